// SPDX-License-Identifier: Apache-2.0
//
// What the machines of a node have in common; the backend has it, and tests have others.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "plugins/vmm/hypervisor/accelerator.h"
#include "plugins/vmm/hypervisor/hypervisor.h"
#include "plugins/vmm/hypervisor/vm_config.h"
#include "plugins/vmm/options.h"

namespace gantry::vmm {

class ReadyVms;

struct HypervisorRequest {
  const VmmOptions& options;
  Accelerator accelerator = Accelerator::kTcg;
  /// Where its control socket is made.
  std::string control_socket{};
};

/// The driver that the options name. Errors: those of the driver.
Result<std::unique_ptr<Hypervisor>> MakeHypervisor(VmConfig config,
                                                   const HypervisorRequest& request);

/// Thread: any. Outlives the machines.
struct MachineMeans {
  /// A program of the plugin: gantry-vsock, gantry-kvm-canary.
  std::function<Result<UniqueFd>(std::string_view name)> open_program;
  /// Which accelerator these options mean on this node. Errors: kFailedPrecondition: what they ask
  /// for is not there. Blocks: up to `deadline`, while the canary runs.
  std::function<Result<Accelerator>(const VmmOptions& options, Deadline deadline)> accelerator;
  /// `MakeHypervisor`, but in tests. Never null.
  std::function<Result<std::unique_ptr<Hypervisor>>(VmConfig config, const HypervisorRequest&)>
      make_hypervisor = MakeHypervisor;
  /// Where kernel and initrd are installed.
  std::string images;
  /// Null: none wait for pods. Outlives the machines' starts.
  ReadyVms* ready_vms = nullptr;
  /// What an agent has for dialling again, after which its machine is ended. It does so within half
  /// a second; on a node that is very busy it takes longer.
  std::chrono::milliseconds redial_limit{60'000};
};

/// What a VM of these options can: known before there is one. Errors: those of the driver.
Result<Traits> TraitsOf(const MachineMeans& means, const VmmOptions& options);

}  // namespace gantry::vmm
