// SPDX-License-Identifier: Apache-2.0
#include "tests/vmm/agent/guest.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "plugins/vmm/protocol/greeting.h"
#include "tests/vmm/harness/tap.h"

namespace gantry::vmm {
namespace {

using std::chrono::steady_clock;

/// So often it is looked at whether the machine is still there.
constexpr std::chrono::seconds kLook{5};

}  // namespace

RealGuest::RealGuest(std::vector<Nic> nics, const std::function<void(VmConfig&)>& change)
    : vm_(GuestSettings{.first = FirstProcess::kAgent,
                        .vsock = VsockProgram::kOurs,
                        .change = [this, &nics, &change](VmConfig& config, QemuOptions&) {
                          Configure(config, nics);
                          if (change) {
                            change(config);
                          }
                        }}) {}

void RealGuest::Configure(VmConfig& config, std::vector<Nic>& nics) {
  const std::string folder = std::filesystem::path(config.console).parent_path();
  const std::string disk = folder + "/root.img";
  std::filesystem::copy_file(TestImage::Get().root_disk, disk);
  config.disks.push_back({.serial = kRootDisk, .path = disk, .read_only = false});
  if (!nics.empty()) {
    config.nics = std::move(nics);
    has_nic_ = true;
  } else if (UniqueFd tap = MakeTap()) {
    Nic nic{.id = "eth0", .mac = kNicMac};
    nic.tap = std::move(tap);
    config.nics.push_back(std::move(nic));
    has_nic_ = true;
  }
}

Result<std::unique_ptr<RealGuest>> RealGuest::Boot(std::vector<Nic> nics,
                                                   const std::function<void(VmConfig&)>& change) {
  if (const TestImage& image = TestImage::Get(); !image.why_not.empty()) {
    return Fail(Code::kFailedPrecondition, "{}", image.why_not);
  }
  std::unique_ptr<RealGuest> guest(new RealGuest(std::move(nics), change));
  if (Status begun = guest->Begin(); !begun) {
    Error error = std::move(begun).error();
    error.message += guest->Words();
    return std::unexpected(std::move(error));
  }
  return guest;
}

Status RealGuest::Begin() {
  GANTRY_TRY(control_, vm_.vsock().Listen(protocol::kControlPort));
  GANTRY_TRY(UniqueFd streams, vm_.vsock().Listen(protocol::kStreamPort));
  GANTRY_TRY(streams_, StreamListener::On(std::move(streams)));
  stop_.reset(::eventfd(0, EFD_CLOEXEC));
  const auto begin = steady_clock::now();
  GANTRY_CHECK_OK(vm_.Launch());
  readers_.emplace_back([this] {
    Watch(streams_->fd(), [this] {
      streams_->OnReadable();
      return true;
    });
  });
  GANTRY_CHECK_OK(Greet());
  boot_time_ = std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now() - begin);
  return {};
}

Status RealGuest::Greet() {
  const Deadline deadline = Soon();
  Result<Greeted> greeted;
  do {
    greeted = GreetAgent(control_, "", steady_clock::now() + kLook);
    if (vm_.process().Ended()) {
      return Fail(Code::kUnavailable, "boot a guest: the machine has ended");
    }
  } while (!greeted && steady_clock::now() < deadline);
  if (!greeted) {
    return std::unexpected(std::move(greeted).error());
  }
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
}

uint32_t RealGuest::WaitForExit(const std::string& container, const std::string& exec) {
  const std::string key = container + "/" + exec;
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, Soon(), [&] { return exits_.contains(key); }) ? exits_[key]
                                                                                 : kNoExit;
}

uint64_t RealGuest::OomKills(const std::string& container) {
  const std::lock_guard lock(mutex_);
  const auto found = kills_.find(container);
  return found == kills_.end() ? 0 : found->second;
}

}  // namespace gantry::vmm
