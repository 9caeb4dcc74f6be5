// SPDX-License-Identifier: Apache-2.0
//
// A real guest: QEMU with the image of tools/lib/vmm_image.sh and a vhost-user vsock device, and
// the host's side of the agent. By KVM where it works, else by TCG, which a test shall not notice
// but by the time that it takes. A guest that fails shows the last lines of its console.
#pragma once

#include <sys/types.h>

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
#include "plugins/vmm/hypervisor/vm_config.h"

namespace gantry::vmm {

inline Deadline In(std::chrono::seconds time) { return std::chrono::steady_clock::now() + time; }

inline Deadline Soon() { return In(std::chrono::seconds(120)); }

class RealGuest {
 public:
  /// Booted and greeted. `nics`: taps; without any it has one that leads nowhere. Errors: with the
  /// console's end.
  static Result<std::unique_ptr<RealGuest>> Boot(std::vector<Nic> nics = {});
  RealGuest(const RealGuest&) = delete;
  RealGuest& operator=(const RealGuest&) = delete;
  ~RealGuest();

  AgentClient& client() { return *client_; }

  template <class Request>
  Result<typename Request::Answer> Call(const Request& request) {
    return client_->Call(request, Soon());
  }

  StreamListener& streams() { return *streams_; }

  std::string Token() { return *streams_->Expect(); }

  Result<UniqueFd> Stream(const std::string& token) { return streams_->Take(token, Soon()); }

  uint32_t WaitForExit(const std::string& container, const std::string& exec = "");
  uint64_t OomKills(const std::string& container);

  /// Whether the machine has ended by itself, in time.
  bool WaitForOff();

  std::string Console() const;

  /// From the start of QEMU to the hello.
  std::chrono::milliseconds boot_time() const { return boot_time_; }

 private:
  RealGuest() = default;

  Status Begin();
  Status StartDevice();
  Status StartMachine();
  Result<std::vector<std::string>> NicWords() const;
  Status Greet();
  void Watch(int fd, const std::function<bool()>& ready);

  std::string folder_;
  std::vector<Nic> nics_;
  UniqueFd control_;
  UniqueFd stop_;
  pid_t device_ = 0;
  pid_t machine_ = 0;
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
