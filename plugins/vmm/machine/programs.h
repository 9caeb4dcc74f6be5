// SPDX-License-Identifier: Apache-2.0
//
// The two programs of a machine as processes: the VMM and, where the VMM has no vsock of its own,
// gantry-vsock. What a guest that broke out of either could do is bounded here: a user of its own,
// no capability, no network, no process to be seen but its own.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/host_process.h>

#include "plugins/vmm/hypervisor/accelerator.h"
#include "plugins/vmm/hypervisor/hypervisor.h"
#include "plugins/vmm/machine/directory.h"
#include "plugins/vmm/machine/means.h"

namespace gantry::vmm {

inline constexpr const char* kVmmTag = "vmm";
inline constexpr const char* kVsockTag = "vsock";

/// For the kernel to end a program that was killed, which may be busy with the guest's memory.
inline constexpr std::chrono::seconds kProgramEnds{10};

struct ProgramTerms {
  MachineUser user;
  std::vector<std::string> cgroups;
  /// Of a VMM that opens taps by name (`Traits::tap_by_name`); empty: it gets one of its own.
  std::string netns;
  /// The VMM sees of the node what `RootOf` says, and `shown`.
  bool own_root = true;
  std::vector<RootPath> shown{};
};

/// `uid`, and the group by which it may open the device of KVM, where it has to. Errors:
/// kFailedPrecondition: that is for root alone.
Result<MachineUser> UserOf(std::optional<uint32_t> uid, Accelerator accelerator,
                           const std::string& kvm = "/dev/kvm");

Result<std::shared_ptr<HostProcess>> StartVmm(SandboxContext& context, Hypervisor& hypervisor,
                                              const MachineDirectory& directory,
                                              const ProgramTerms& terms);

/// Listens where the VMM is to connect, too.
Result<std::shared_ptr<HostProcess>> StartVsock(SandboxContext& context, const MachineMeans& means,
                                                const MachineDirectory& directory,
                                                const ProgramTerms& terms);

}  // namespace gantry::vmm
