// SPDX-License-Identifier: Apache-2.0
//
// The whole of a guest: what the tests of the hypervisors' room boot. It says on its console what
// it has and what comes and goes, a line each, and how it ends is the kernel's command line's to
// say:
//
//     gantry.end=panic | off | reset       as soon as it is ready
#include <dirent.h>
#include <fcntl.h>
#include <linux/module.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>
#include <string>

namespace {

constexpr useconds_t kPause = 50'000;
/// In the order in which they need each other; those that a kernel has built in are not there.
constexpr const char* kModules[] = {"virtio_ring",
                                    "virtio",
                                    "virtio_pci_legacy_dev",
                                    "virtio_pci_modern_dev",
                                    "virtio_pci",
                                    "virtio_blk",
                                    "failover",
                                    "net_failover",
                                    "virtio_net",
                                    "virtio_balloon",
                                    "virtio_mem"};

void Say(const std::string& line) {
  const std::string whole = "gantry guest: " + line + "\n";
  [[maybe_unused]] const ssize_t written = write(STDOUT_FILENO, whole.data(), whole.size());
}

std::string FirstWordOf(const std::string& path) {
  std::string word;
  std::ifstream(path) >> word;
  return word;
}

void Write(const std::string& path, const char* text) { std::ofstream(path) << text; }

void Load(const std::string& name) {
  for (const char* const end : {".ko", ".ko.xz"}) {
    const int fd = open(("/modules/" + name + end).c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
      continue;
    }
    const int flags = std::strcmp(end, ".ko") == 0 ? 0 : MODULE_INIT_COMPRESSED_FILE;
    if (syscall(SYS_finit_module, fd, "", flags) != 0) {
      Say("module " + name + " cannot be loaded");
    }
    close(fd);
  }
}

/// What is said of each entry of a folder of /sys.
template <class Say>
std::set<std::string> Found(const char* folder, Say say) {
  std::set<std::string> found;
  DIR* const entries = opendir(folder);
  if (entries == nullptr) {
    return found;
  }
  while (const dirent* const entry = readdir(entries)) {
    if (entry->d_name[0] != '.') {
      found.insert(say(std::string(folder) + "/" + entry->d_name));
    }
  }
  closedir(entries);
  found.erase("");
  return found;
}

std::string DiskAt(const std::string& path) {
  const std::string serial = FirstWordOf(path + "/serial");
  return serial.empty() ? "" : "disk " + serial + " read-only " + FirstWordOf(path + "/ro");
}

std::string NicAt(const std::string& path) {
  const std::string address = FirstWordOf(path + "/address");
  return address == "00:00:00:00:00:00" ? ""
                                        : "nic " + address + " mtu " + FirstWordOf(path + "/mtu");
}

/// Takes a processor that is there into use.
std::string CpuAt(const std::string& path) {
  if (FirstWordOf(path + "/online") == "0") {
    Write(path + "/online", "1");
  }
  return "";
}

std::string Memory() {
  struct sysinfo info{};
  sysinfo(&info);
  return "memory " + std::to_string((info.totalram * info.mem_unit) >> 20) + " MiB";
}

std::set<std::string> LookAround() {
  Found("/sys/devices/system/cpu", CpuAt);
  std::set<std::string> all = Found("/sys/block", DiskAt);
  all.merge(Found("/sys/class/net", NicAt));
  all.insert("cpus " + std::to_string(get_nprocs()));
  all.insert(Memory());
  return all;
}

/// Returns where the guest is to panic.
bool EndAsAsked(const std::string& cmdline) {
  if (cmdline.contains("gantry.end=off")) {
    reboot(RB_POWER_OFF);
  }
  if (cmdline.contains("gantry.end=reset")) {
    reboot(RB_AUTOBOOT);
  }
  return cmdline.contains("gantry.end=panic");
}

[[noreturn]] void Watch() {
  std::set<std::string> known;
  for (unsigned long alive = 0;; ++alive) {
    std::set<std::string> now = LookAround();
    for (const std::string& one : now) {
      if (!known.contains(one)) {
        Say("has " + one);
      }
    }
    for (const std::string& one : known) {
      if (!now.contains(one)) {
        Say("lost " + one);
      }
    }
    known = std::move(now);
    if (alive == 0) {
      Say("ready");
    }
    Say("alive " + std::to_string(alive));
    usleep(kPause);
  }
}

}  // namespace

int main() {
  mount("proc", "/proc", "proc", 0, nullptr);
  mount("sysfs", "/sys", "sysfs", 0, nullptr);
  mount("devtmpfs", "/dev", "devtmpfs", 0, nullptr);
  const int console = open("/dev/console", O_RDWR | O_CLOEXEC);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    dup2(console, fd);
  }
  for (const char* const module : kModules) {
    Load(module);
  }
  Write("/sys/devices/system/memory/auto_online_blocks", "online_movable");
  std::string cmdline;
  std::getline(std::ifstream("/proc/cmdline") >> std::ws, cmdline);
  if (EndAsAsked(cmdline)) {
    return 1;
  }
  Watch();
}
