// SPDX-License-Identifier: Apache-2.0
//
// A real guest with the agent as its first process, and the host's side of that agent.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "plugins/vmm/agent/client.h"
#include "plugins/vmm/agent/streams.h"
#include "tests/vmm/harness/guest_vm.h"

namespace gantry::vmm {

/// With a disk whose serial is this, which has busybox, and a NIC where the node lets one be made.
inline constexpr const char* kRootDisk = "container_root";
inline constexpr const char* kNicMac = "02:00:00:00:00:07";

class RealGuest {
 public:
  /// Booted and greeted. Errors: with the console's end.
  /// `nics`: in place of that one. `change` may be none.
  static Result<std::unique_ptr<RealGuest>> Boot(std::vector<Nic> nics = {},
                                                 const std::function<void(VmConfig&)>& change = {});
  RealGuest(const RealGuest&) = delete;
  RealGuest& operator=(const RealGuest&) = delete;
  ~RealGuest();

  AgentClient& client() { return *client_; }

  Hypervisor& vm() { return vm_.vm(); }

  template <class Request>
  Result<typename Request::Answer> Call(const Request& request) {
    return client_->Call(request, Soon());
  }

  StreamListener& streams() { return *streams_; }

  std::string Token() { return *streams_->Expect(); }

  Result<UniqueFd> Stream(const std::string& token) { return streams_->Take(token, Soon()); }

  /// In place of a status: it has not ended.
  static constexpr uint32_t kNoExit = 999;

  uint32_t WaitForExit(const std::string& container, const std::string& exec = "");
  uint64_t OomKills(const std::string& container);

  /// How the machine has ended by itself.
  VmEnd AwaitEnd() { return vm_.AwaitEnd(); }

  bool has_nic() const { return has_nic_; }

  std::string Words() const { return vm_.Words(); }

  /// From the start of QEMU to the hello.
  std::chrono::milliseconds boot_time() const { return boot_time_; }

 private:
  RealGuest(std::vector<Nic> nics, const std::function<void(VmConfig&)>& change);

  Status Begin();
  Status Greet();
  void Configure(VmConfig& config, std::vector<Nic>& nics);
  void Watch(int fd, const std::function<bool()>& ready);

  bool has_nic_ = false;
  GuestVm vm_;
  UniqueFd control_;
  UniqueFd stop_;
  std::chrono::milliseconds boot_time_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, uint32_t> exits_;
  std::map<std::string, uint64_t> kills_;
  std::unique_ptr<AgentClient> client_;
  std::unique_ptr<StreamListener> streams_;
  std::vector<std::thread> readers_;
};

}  // namespace gantry::vmm
