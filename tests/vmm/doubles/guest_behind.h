// SPDX-License-Identifier: Apache-2.0
//
// The guest behind a double of a VMM: a QEMU of this process's own, driven by gantry's driver, with
// gantry-vsock as its vsock device, whose sockets are those of the hybrid kind. Guests are always
// translated (TCG): what a double is for needs no KVM.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include <gantry/deadline.h>
#include <gantry/error.h>

#include "plugins/vmm/hypervisor/hypervisor.h"

namespace gantry::test {

/// What a guest takes for anything, on a busy machine.
inline Deadline GuestTime() { return std::chrono::steady_clock::now() + std::chrono::minutes(3); }

/// Thread: any.
class GuestBehind {
 public:
  /// `ended` is called on a thread of its own, where a guest ends that was not stopped.
  explicit GuestBehind(std::function<void(const vmm::VmEnd& end)> ended);
  GuestBehind(const GuestBehind&) = delete;
  GuestBehind& operator=(const GuestBehind&) = delete;
  ~GuestBehind() = default;

  /// Boots it, or restores it, paused, where the configuration says from what. A vsock device's
  /// `uds` is where it listens. What ran before has ended.
  Status Start(vmm::VmConfig config);
  /// Ends it, and nobody is told.
  void Stop();

  /// Errors: as an error's words: there is none.
  Result<std::shared_ptr<vmm::Hypervisor>> vm() const;
  Status AddVsock(uint32_t cid, const std::string& uds);

 private:
  /// The device's process, and where it meets QEMU.
  Result<std::string> StartVsock(uint32_t cid, const std::string& uds);
  void Watch(pid_t qemu, const std::shared_ptr<vmm::Hypervisor>& vm);

  const std::function<void(const vmm::VmEnd& end)> ended_;
  /// Of sockets between the two of them; removed when they have met.
  std::string folder_;
  mutable std::mutex mutex_;
  std::shared_ptr<vmm::Hypervisor> vm_;
  pid_t qemu_ = 0;
  /// It has been started, so its end is told.
  bool runs_ = false;
  pid_t vsock_ = 0;
};

/// `config`, which stays; its taps are shared.
vmm::VmConfig CopyOf(const vmm::VmConfig& config);

}  // namespace gantry::test
