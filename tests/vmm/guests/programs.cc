// SPDX-License-Identifier: Apache-2.0
//
// A guest that runs one program of the host's as root, of a disk that becomes its root. Port 1030
// of the host has all that the program writes, and its end as the last line: `exit N` or `signal
// N`. Which it is the kernel's command line says:
//
//     gantry.run=PATH          in the root
//     gantry.arguments=A,B     none: it has none
#include <linux/vm_sockets.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include <gantry/format.h>
#include <gantry/toolkit/container/rootfs.h>

#include "plugins/vmm/guest/devices.h"
#include "plugins/vmm/guest/first.h"
#include "plugins/vmm/guest/modules.h"

namespace gantry::vmm {
namespace {

constexpr uint32_t kPort = 1030;
constexpr const char* kDisk = "programs";
constexpr const char* kRoot = "/newroot";
constexpr std::chrono::seconds kDeviceDeadline{60};

/// What is behind `name=` on the kernel's command line.
std::string Word(const std::string& name) {
  std::ifstream words("/proc/cmdline");
  for (std::string word; words >> word;) {
    if (word.starts_with(name + "=")) {
      return word.substr(name.size() + 1);
    }
  }
  return "";
}

Result<int> Dial() {
  const int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return FailErrno(errno, "make a vsock socket");
  }
  sockaddr_vm host{};
  host.svm_family = AF_VSOCK;
  host.svm_cid = VMADDR_CID_HOST;
  host.svm_port = kPort;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&host), sizeof(host)) != 0) {
    return FailErrno(errno, "dial port {} of the host", kPort);
  }
  return fd;
}

/// In a root of the disk's, which a process can leave by pivot_root(2), with all of the kernel's
/// file systems and a scratch folder.
Status EnterDisk() {
  GANTRY_TRY(const std::string disk,
             guest::AwaitDisk(kDisk, std::chrono::steady_clock::now() + kDeviceDeadline));
  if (mount(disk.c_str(), kRoot, "ext4", 0, nullptr) != 0) {
    return FailErrno(errno, "mount disk '{}'", kDisk);
  }
  GANTRY_CHECK_OK(container::SwitchRoot(kRoot));
  GANTRY_CHECK_OK(guest::MountSystem());
  if (mount("tmpfs", "/tmp", "tmpfs", 0, "mode=1777") != 0) {
    return FailErrno(errno, "mount a scratch folder");
  }
  return {};
}

std::vector<std::string> Arguments() {
  std::vector<std::string> all{Word("gantry.run")};
  const std::string rest = Word("gantry.arguments");
  for (size_t at = 0; at < rest.size();) {
    const size_t end = std::min(rest.find(',', at), rest.size());
    all.push_back(rest.substr(at, end - at));
    at = end + 1;
  }
  return all;
}

/// In a cgroup of its own, as whatever a machine starts.
[[noreturn]] void Run(int output) {
  mkdir("/sys/fs/cgroup/programs", 0755);
  std::ofstream("/sys/fs/cgroup/programs/cgroup.procs") << getpid();
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  std::vector<std::string> arguments = Arguments();
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) {
    argv.push_back(argument.data());
  }
  argv.push_back(nullptr);
  char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  char home[] = "HOME=/root";
  char* const environment[] = {path, home, nullptr};
  execve(argv[0], argv.data(), environment);
  dprintf(output, "execute '%s': %s\n", argv[0], ErrnoName(errno).c_str());
  _exit(127);
}

/// Its end. What it leaves behind is collected meanwhile.
std::string AwaitEnd(pid_t pid) {
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(-1, &status, 0);
    if (ended < 0 && errno != EINTR) {
      return "lost";
    }
    if (ended == pid) {
      return WIFSIGNALED(status) ? Format("signal {}", WTERMSIG(status))
                                 : Format("exit {}", WEXITSTATUS(status));
    }
  }
}

Status Serve() {
  GANTRY_CHECK_OK(guest::MountSystem());
  GANTRY_CHECK_OK(guest::LoadModules("/modules/early"));
  GANTRY_CHECK_OK(guest::LoadModules("/modules/late"));
  GANTRY_TRY(const int output, Dial());
  if (const Status entered = EnterDisk(); !entered) {
    dprintf(output, "%s\n", entered.error().message.c_str());
    return entered;
  }
  const pid_t pid = fork();
  if (pid == 0) {
    Run(output);
  }
  dprintf(output, "\n%s\n", AwaitEnd(pid).c_str());
  // Read by the host before the machine is off.
  shutdown(output, SHUT_WR);
  char one = 0;
  static_cast<void>(!read(output, &one, 1));
  return {};
}

}  // namespace
}  // namespace gantry::vmm

int main() {
  if (const gantry::Status served = gantry::vmm::Serve(); !served) {
    std::printf("gantry guest: %s\n", served.error().message.c_str());
  }
  reboot(RB_POWER_OFF);
  return 1;
}
