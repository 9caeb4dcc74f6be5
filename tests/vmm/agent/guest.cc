// SPDX-License-Identifier: Apache-2.0
#include "tests/vmm/agent/guest.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/backoff.h>

namespace gantry::vmm {
namespace {

constexpr const char* kCommandLine =
    "console=ttyS0 quiet loglevel=3 panic=-1 no_timer_check mitigations=off nokaslr "
    "cryptomgr.notests "
    "random.trust_cpu=on audit=0 init_on_alloc=0 rcupdate.rcu_expedited=1 8250.nr_uarts=1 "
    "i8042.noprobe";
constexpr std::chrono::seconds kBootTime{180};

std::string Image(const char* name) { return std::string(GANTRY_VMM_IMAGE) + "/" + name; }

/// The vsock device: the build's own, unless somebody chooses another build's.
std::string DeviceProgram() {
  const char* const chosen = std::getenv("GANTRY_VSOCK_DEVICE");  // NOLINT(concurrency-mt-unsafe)
  return chosen != nullptr ? chosen : GANTRY_VSOCK;
}

/// For a child to inherit.
Status Inherit(const UniqueFd& fd) {
  if (::fcntl(fd.get(), F_SETFD, 0) != 0) {
    return FailErrno(errno, "give a child a descriptor");
  }
  return {};
}

pid_t Start(const std::vector<std::string>& words, const std::string& log) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (const std::string& word : words) {
    argv.push_back(const_cast<char*>(word.c_str()));
  }
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  return child;
}

void End(pid_t& child) {
  if (child > 0) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    child = 0;
  }
}

bool HasKvm() {
  // Where it is there and hangs, as on some nested machines, whoever runs the tests says so.
  const char* const choice = std::getenv("GANTRY_VMM_ACCEL");  // NOLINT(concurrency-mt-unsafe)
  return choice != nullptr && std::string(choice) == "kvm";
}

}  // namespace

Result<std::unique_ptr<RealGuest>> RealGuest::Boot(std::vector<Nic> nics) {
  std::unique_ptr<RealGuest> guest(new RealGuest);
  guest->nics_ = std::move(nics);
  if (Status begun = guest->Begin(); !begun) {
    Error error = std::move(begun).error();
    error.message += "\n--- console:\n" + guest->Console();
    return std::unexpected(std::move(error));
  }
  return guest;
}

Status RealGuest::Begin() {
  char name[] = "/tmp/gantry-vmm-XXXXXX";
  folder_ = ::mkdtemp(name);
  GANTRY_TRY(control_, ListenUnix(Format("{}/v_{}", folder_, protocol::kControlPort)));
  GANTRY_TRY(UniqueFd streams, ListenUnix(Format("{}/v_{}", folder_, protocol::kStreamPort)));
  GANTRY_TRY(streams_, StreamListener::On(std::move(streams)));
  stop_.reset(::eventfd(0, EFD_CLOEXEC));
  GANTRY_CHECK_OK(StartDevice());
  GANTRY_CHECK_OK(StartMachine());
  readers_.emplace_back([this] {
    Watch(streams_->fd(), [this] {
      streams_->OnReadable();
      return true;
    });
  });
  return Greet();
}

// The descriptors are the child's alone when this returns.
Status RealGuest::StartDevice() {
  GANTRY_TRY(const UniqueFd front_end, ListenUnix(folder_ + "/vu.sock"));
  GANTRY_TRY(const UniqueFd hosts, ListenUnix(folder_ + "/v"));
  const UniqueFd directory(::open(folder_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (const UniqueFd* const fd : {&front_end, &hosts, &directory}) {
    GANTRY_CHECK_OK(Inherit(*fd));
  }
  device_ = Start({DeviceProgram(), Format("--front-end={}", front_end.get()),
                   Format("--hosts={}", hosts.get()), Format("--directory={}", directory.get()),
                   "--name=v", "--guest-cid=3"},
                  folder_ + "/device.log");
  return device_ > 0 ? Status() : FailErrno(errno, "start '{}'", DeviceProgram());
}

Result<std::vector<std::string>> RealGuest::NicWords() const {
  if (nics_.empty()) {
    return std::vector<std::string>{"-netdev", "hubport,id=n0,hubid=0", "-device",
                                    "virtio-net-pci,netdev=n0,mac=02:00:00:00:00:07,romfile="};
  }
  std::vector<std::string> words;
  for (const Nic& nic : nics_) {
    GANTRY_CHECK_OK(Inherit(nic.tap));
    words.insert(
        words.end(),
        {"-netdev", Format("tap,id={},fd={}", nic.id, nic.tap.get()), "-device",
         Format("virtio-net-pci,netdev={},mac={},host_mtu={},romfile=", nic.id, nic.mac, nic.mtu)});
  }
  return words;
}

Status RealGuest::StartMachine() {
  const bool kvm = HasKvm();
  std::vector<std::string> words = {
      "qemu-system-x86_64",
      "-M",
      "q35",
      "-accel",
      kvm ? "kvm" : "tcg",
      "-cpu",
      kvm ? "host" : "max",
      "-m",
      "256M",
      "-smp",
      "1",
      "-nodefaults",
      "-no-user-config",
      "-display",
      "none",
      "-no-reboot",
      "-chardev",
      Format("file,id=c0,path={}/console", folder_),
      "-serial",
      "chardev:c0",
      "-object",
      "memory-backend-memfd,id=mem,size=256M,share=on",
      "-machine",
      "memory-backend=mem",
      "-kernel",
      Image("kernel"),
      "-initrd",
      Image("initrd"),
      "-append",
      kCommandLine,
      "-chardev",
      Format("socket,id=vs,path={}/vu.sock", folder_),
      "-device",
      "vhost-user-vsock-pci,chardev=vs",
      "-drive",
      Format("file={},format=raw,if=none,id=root,snapshot=on", Image("root.img")),
      "-device",
      "virtio-blk-pci,drive=root,serial=container-root"};
  GANTRY_TRY(const std::vector<std::string> nics, NicWords());
  words.insert(words.end(), nics.begin(), nics.end());
  machine_ = Start(words, folder_ + "/qemu.log");
  // They are the machine's alone, and go with it.
  nics_.clear();
  return machine_ > 0 ? Status() : FailErrno(errno, "start QEMU");
}

Status RealGuest::Greet() {
  const auto begin = std::chrono::steady_clock::now();
  Result<Greeted> greeted;
  do {
    greeted = GreetAgent(control_, "", In(std::chrono::seconds(5)));
    if (::waitpid(machine_, nullptr, WNOHANG) != 0) {
      machine_ = 0;
      return Fail(Code::kUnavailable, "boot a guest: the machine has ended");
    }
  } while (!greeted && std::chrono::steady_clock::now() < begin + kBootTime);
  if (!greeted) {
    return std::unexpected(std::move(greeted).error());
  }
  boot_time_ = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - begin);
  AgentEvents events;
  events.exited = [this](const AgentExit& exit) {
    const std::lock_guard lock(mutex_);
    exits_[exit.container + "/" + exit.exec] = exit.exit.status;
    changed_.notify_all();
  };
  events.out_of_memory = [this](const std::string& container, uint64_t kills) {
    const std::lock_guard lock(mutex_);
    kills_[container] = kills;
  };
  client_ = std::make_unique<AgentClient>("guest", std::move(*greeted), std::move(events));
  readers_.emplace_back([this] { Watch(client_->fd(), [this] { return client_->OnReadable(); }); });
  return {};
}

void RealGuest::Watch(int fd, const std::function<bool()>& ready) {
  for (;;) {
    std::array<pollfd, 2> two = {{{.fd = fd, .events = POLLIN, .revents = 0},
                                  {.fd = stop_.get(), .events = POLLIN, .revents = 0}}};
    ::poll(two.data(), two.size(), -1);
    if (two[1].revents != 0 || (two[0].revents != 0 && !ready())) {
      return;
    }
  }
}

RealGuest::~RealGuest() {
  const uint64_t one = 1;
  if (stop_ && ::write(stop_.get(), &one, sizeof(one)) < 0) {
    std::abort();
  }
  if (client_) {
    client_->Close();
  }
  for (std::thread& reader : readers_) {
    reader.join();
  }
  End(machine_);
  End(device_);
  if (!folder_.empty()) {
    IgnoreError(RemoveTree(folder_), "the next guest has another name");
  }
}

uint32_t RealGuest::WaitForExit(const std::string& container, const std::string& exec) {
  const std::string key = container + "/" + exec;
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, Soon(), [&] { return exits_.contains(key); }) ? exits_[key]
                                                                                 : 999;
}

uint64_t RealGuest::OomKills(const std::string& container) {
  const std::lock_guard lock(mutex_);
  const auto found = kills_.find(container);
  return found == kills_.end() ? 0 : found->second;
}

bool RealGuest::WaitForOff() {
  Backoff backoff({.no_event = "a child of this test's, whose end waitpid tells",
                   .first = std::chrono::milliseconds(5),
                   .longest = std::chrono::milliseconds(100)});
  int status = 0;
  while (::waitpid(machine_, &status, WNOHANG) == 0) {
    if (!backoff.Sleep(Soon())) {
      return false;
    }
  }
  machine_ = 0;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string RealGuest::Console() const {
  return ReadTail(folder_ + "/console", 4000).value_or("") +
         ReadTail(folder_ + "/qemu.log", 2000).value_or("") +
         ReadTail(folder_ + "/device.log", 2000).value_or("");
}

}  // namespace gantry::vmm
