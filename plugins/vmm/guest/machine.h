// SPDX-License-Identifier: Apache-2.0
//
// The machine that the agent is the first process of.
#pragma once

#include "plugins/vmm/guest/platform.h"

namespace gantry::vmm::guest {

class Machine : public Platform {
 public:
  /// By AF_VSOCK, to the host. Source: vsock(7).
  Result<UniqueFd> Dial(uint32_t port) override;
  Status SetUp(const protocol::SetUp& request) override;
  Status Attach(const protocol::Attach& request) override;
  Status Detach(const protocol::Detach& request) override;
  Result<protocol::OnlineAnswer> Online(const protocol::Online& request) override;
  void Sync() override;
  /// Off; or anew, where the kernel's command line has `gantry.off=reboot`, for machines that a
  /// guest ends so (Firecracker's; QEMU's microvm with -no-reboot).
  void PowerOff() override;
};

}  // namespace gantry::vmm::guest
