// SPDX-License-Identifier: Apache-2.0
//
// A vsock device for a guest of QEMU's, as a process of its own: gantry's, or rust-vmm's to be held
// against it. Its sockets are in the guest's folder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/testing/sandbox_context.h>
#include <gantry/unique_fd.h>

#include "plugins/vmm/hypervisor/vm_config.h"

namespace gantry::vmm {

enum class VsockProgram {
  kOurs,
  /// rust-vmm's vhost-device-vsock: GANTRY_VMM_VHOST_DEVICE_VSOCK names it.
  kPeer,
};

/// What `kPeer` lacks here; empty: nothing.
std::string WhyNoPeer();

/// Thread: the test's.
class VsockDevice {
 public:
  /// It waits for its front end when this returns. Blocks: up to `deadline`.
  static Result<VsockDevice> Start(FakeSandboxContext& context, const std::string& folder,
                                   VsockProgram program, Deadline deadline);

  /// For the VM's configuration.
  Vsock Config() const;
  /// Listens for the guest on `port`; to be done before it boots.
  Result<UniqueFd> Listen(uint32_t port) const;
  /// A blocking socket, connected to a port of the guest.
  Result<UniqueFd> Dial(uint32_t port) const;
  /// Without waiting for the answer; none where it was not taken.
  UniqueFd BeginToDial(uint32_t port) const;

  HostProcess& process() { return *process_; }

  /// What it has said.
  std::string Log() const;

 private:
  explicit VsockDevice(std::string folder) : folder_(std::move(folder)) {}

  std::string folder_;
  std::shared_ptr<HostProcess> process_;
};

}  // namespace gantry::vmm
