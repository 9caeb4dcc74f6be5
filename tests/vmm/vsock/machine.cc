// SPDX-License-Identifier: Apache-2.0
#include "tests/vmm/vsock/machine.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>

#include "tests/vmm/vsock/initrd.h"

namespace gantry::vmm {
namespace {

using std::chrono::milliseconds;

constexpr const char* kQemu = "/usr/bin/qemu-system-x86_64";
constexpr const char* kPeer = "GANTRY_VMM_VHOST_DEVICE_VSOCK";
/// Of a guest without KVM on a machine that does other things.
constexpr milliseconds kBoot = std::chrono::minutes(4);
constexpr milliseconds kAnswer = std::chrono::minutes(1);

/// What is decided here is a test's: nothing of it is for production.
constexpr const char* kCommandLine =
    "console=ttyS0 quiet loglevel=3 panic=-1 no_timer_check mitigations=off nokaslr "
    "cryptomgr.notests random.trust_cpu=on audit=0 apparmor=0 lsm= init_on_alloc=0 "
    "rcupdate.rcu_expedited=1 8250.nr_uarts=1 i8042.noprobe";

std::string Setting(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string KernelRoot() { return Setting("GANTRY_VMM_KERNEL"); }

/// Whether `socket` has something to read by then.
bool IsReadable(int socket, milliseconds limit) {
  pollfd one{socket, POLLIN, 0};
  return poll(&one, 1, static_cast<int>(limit.count())) > 0;
}

}  // namespace

std::string WhatIsMissing(bool with_peer) {
  if (KernelRoot().empty()) {
    return "no kernel for guests: GANTRY_VMM_KERNEL, which ./run test vmm sets";
  }
  if (access(kQemu, X_OK) != 0) {
    return Format("no {}: ./run setup vmm", kQemu);
  }
  if (with_peer && access(Setting(kPeer).c_str(), X_OK) != 0) {
    return Format("no vhost-device-vsock: {} is to name one, as `cargo install` makes it", kPeer);
  }
  return "";
}

Child::Child(std::vector<std::string> words, const std::vector<int>& inherited,
             const std::string& log) {
  std::vector<char*> arguments;
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ != 0) {
    return;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int output = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  for (const int fd : inherited) {
    fcntl(fd, F_SETFD, 0);
  }
  if (getppid() == parent) {
    execv(arguments[0], arguments.data());
  }
  _exit(127);
}

Child::Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}

Child& Child::operator=(Child&& other) noexcept {
  std::swap(pid_, other.pid_);
  return *this;
}

Child::~Child() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    Wait(kAnswer);
  }
}

int Child::Wait(milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  int status = 0;
  while (waitpid(pid_, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) {
      return -1;
    }
    poll(nullptr, 0, 1);
  }
  pid_ = -1;
  return status;
}

Result<Machine> Machine::Boot(MachineSettings settings) {
  Machine machine;
  GANTRY_TRY(machine.directory_, os::TempDir::Create());
  GANTRY_TRY(machine.ready_, ListenUnix(machine.PathOf("v_1025")));
  GANTRY_TRY(machine.reports_, ListenUnix(machine.PathOf("v_1026")));
  GANTRY_CHECK_OK(machine.StartVsock(settings.vsock));
  GANTRY_CHECK_OK(machine.StartQemu(settings));
  GANTRY_CHECK_OK(machine.OpenMonitor());
  if (settings.hot_added) {
    GANTRY_CHECK_OK(machine.AddDevice());
  }
  GANTRY_CHECK_OK(machine.AwaitReady());
  return machine;
}

Status Machine::StartVsock(VsockProgram program) {
  if (program == VsockProgram::kPeer) {
    vsock_ = Child({Setting(kPeer), "--vm",
                    Format("guest-cid=3,socket={},uds-path={}", PathOf("front"), PathOf("v"))},
                   {}, PathOf("vsock.log"));
    const auto end = std::chrono::steady_clock::now() + kAnswer;
    while (!std::filesystem::exists(PathOf("front"))) {
      if (std::chrono::steady_clock::now() > end) {
        return Fail(Code::kDeadlineExceeded, "start {}", Setting(kPeer));
      }
      poll(nullptr, 0, 1);
    }
    return {};
  }
  GANTRY_TRY(const UniqueFd front_end, ListenUnix(PathOf("front")));
  GANTRY_TRY(const UniqueFd hosts, ListenUnix(PathOf("v")));
  const UniqueFd place(open(directory_.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  vsock_ = Child(
      {GANTRY_VSOCK, Format("--front-end={}", front_end.get()), Format("--hosts={}", hosts.get()),
       Format("--directory={}", place.get()), "--name=v", "--guest-cid=3"},
      {front_end.get(), hosts.get(), place.get()}, PathOf("vsock.log"));
  return {};
}

Status Machine::StartQemu(const MachineSettings& settings) {
  GANTRY_TRY(const std::string kernel, KernelBelow(KernelRoot()));
  GANTRY_CHECK_OK(WriteInitrd(KernelRoot(), GANTRY_VMM_INIT, PathOf("initrd")));
  std::vector<std::string> words{kQemu,
                                 "-M",
                                 "q35,sata=off,usb=off,memory-backend=mem",
                                 "-accel",
                                 "tcg",
                                 "-cpu",
                                 "max",
                                 "-m",
                                 "256M",
                                 "-smp",
                                 "1",
                                 "-nodefaults",
                                 "-no-user-config",
                                 "-display",
                                 "none",
                                 "-no-reboot",
                                 "-object",
                                 "memory-backend-memfd,id=mem,size=256M,share=on",
                                 "-chardev",
                                 Format("file,id=c0,path={}", PathOf("console")),
                                 "-serial",
                                 "chardev:c0",
                                 "-qmp",
                                 Format("unix:{},server=on,wait=off", PathOf("qmp")),
                                 "-kernel",
                                 kernel,
                                 "-initrd",
                                 PathOf("initrd"),
                                 "-append",
                                 kCommandLine,
                                 "-device",
                                 "pcie-root-port,id=rp0,chassis=1,slot=1"};
  if (!settings.hot_added) {
    words.insert(words.end(), {"-chardev", Format("socket,id=vs,path={}", PathOf("front")),
                               "-device", "vhost-user-vsock-pci,chardev=vs"});
  }
  qemu_ = Child(std::move(words), {}, PathOf("qemu.log"));
  return {};
}

Status Machine::OpenMonitor() {
  const auto end = std::chrono::steady_clock::now() + kAnswer;
  while (true) {
    auto connected = ConnectUnix(PathOf("qmp"));
    if (connected) {
      monitor_ = std::move(*connected);
      GANTRY_CHECK_OK(SetNonblocking(monitor_.get(), false));
      GANTRY_CHECK_OK(Monitor("{\"execute\": \"qmp_capabilities\"}"));
      return {};
    }
    if (std::chrono::steady_clock::now() > end || qemu_.Wait(milliseconds(0)) != -1) {
      return Fail(Code::kUnavailable, "start QEMU: {}",
                  ReadFile(PathOf("qemu.log"), 1 << 16).value_or(""));
    }
    poll(nullptr, 0, 1);
  }
}

Result<std::string> Machine::Monitor(const std::string& command) const {
  GANTRY_CHECK_OK(WriteTo(monitor_.get(), command + "\n"));
  std::string line;
  while (true) {
    GANTRY_TRY(const std::string one, ReadFrom(monitor_.get(), 1));
    line += one;
    if (one != "\n") {
      continue;
    }
    if (line.starts_with("{\"return\"")) {
      return line;
    }
    if (line.starts_with("{\"error\"")) {
      return Fail(Code::kInternal, "{}: {}", command, line);
    }
    line.clear();  // A greeting, or an event.
  }
}

Status Machine::AddDevice() const {
  GANTRY_CHECK_OK(
      Monitor(Format("{{\"execute\": \"chardev-add\", \"arguments\": {{\"id\": \"vs\", "
                     "\"backend\": {{\"type\": \"socket\", \"data\": {{\"addr\": "
                     "{{\"type\": \"unix\", \"data\": {{\"path\": \"{}\"}}}}, "
                     "\"server\": false}}}}}}}}",
                     PathOf("front"))));
  GANTRY_CHECK_OK(
      Monitor("{\"execute\": \"device_add\", \"arguments\": {\"driver\": "
              "\"vhost-user-vsock-pci\", \"chardev\": \"vs\", \"bus\": \"rp0\"}}"));
  return {};
}

Status Machine::AwaitReady() {
  const bool came = IsReadable(ready_.get(), kBoot);
  auto accepted = AcceptUnix(ready_.get());
  if (!came || !accepted || !*accepted) {
    return Fail(Code::kDeadlineExceeded, "boot a guest: its init says nothing; its console: {}",
                Console());
  }
  GANTRY_TRY(const std::string said, ReadFrom((*accepted)->get(), 5));
  return said == "ready" ? Status() : Fail(Code::kInternal, "boot a guest: it says '{}'", said);
}

std::string Machine::Console() const {
  const std::string all = ReadFile(PathOf("console"), 1 << 20).value_or("");
  constexpr size_t kEnd = 4000;
  return all.size() <= kEnd ? all : all.substr(all.size() - kEnd);
}

std::string Machine::VsockLog() const {
  return ReadFile(PathOf("vsock.log"), 1 << 16).value_or("");
}

UniqueFd Machine::BeginToDial(uint32_t port) const {
  auto socket = ConnectUnix(PathOf("v"));
  if (!socket || !WriteTo(socket->get(), Format("CONNECT {}\n", port))) {
    return {};
  }
  return std::move(*socket);
}

Result<UniqueFd> Machine::Dial(uint32_t port) const {
  UniqueFd socket = BeginToDial(port);
  if (!socket) {
    return Fail(Code::kUnavailable, "dial port {} of the guest", port);
  }
  std::string answer;
  while (!answer.ends_with('\n')) {
    GANTRY_TRY(const std::string one, ReadFrom(socket.get(), 1));
    answer += one;
  }
  GANTRY_CHECK_OK(SetNonblocking(socket.get(), false));
  return socket;
}

Result<std::string> ReadFrom(int socket, size_t size) {
  std::string data(size, '\0');
  size_t got = 0;
  while (got < size) {
    if (!IsReadable(socket, kAnswer)) {
      return Fail(Code::kDeadlineExceeded, "read {} bytes: {} have come", size, got);
    }
    const ssize_t count = recv(socket, data.data() + got, size - got, MSG_DONTWAIT);
    if (count == 0 || (count < 0 && errno != EAGAIN)) {
      return Fail(Code::kUnavailable, "read {} bytes: the end came after {}", size, got);
    }
    got += count < 0 ? 0 : static_cast<size_t>(count);
  }
  return data;
}

Result<std::string> ReadToEnd(int socket) {
  std::string data;
  while (true) {
    if (!IsReadable(socket, kAnswer)) {
      return Fail(Code::kDeadlineExceeded, "read to the end: {} bytes have come", data.size());
    }
    std::array<char, 65536> bytes{};
    const ssize_t count = recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count == 0) {
      return data;
    }
    if (count < 0 && errno != EAGAIN) {
      return FailErrno(errno, "read to the end: {} bytes have come", data.size());
    }
    data.append(bytes.data(), count < 0 ? 0 : static_cast<size_t>(count));
  }
}

Status WriteTo(int socket, std::string_view data) {
  while (!data.empty()) {
    pollfd one{socket, POLLOUT, 0};
    if (poll(&one, 1, static_cast<int>(kAnswer.count())) <= 0) {
      return Fail(Code::kDeadlineExceeded, "write: {} bytes are left", data.size());
    }
    const ssize_t count = send(socket, data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno != EAGAIN) {
      return FailErrno(errno, "write: {} bytes are left", data.size());
    }
    data.remove_prefix(count < 0 ? 0 : static_cast<size_t>(count));
  }
  return {};
}

}  // namespace gantry::vmm
