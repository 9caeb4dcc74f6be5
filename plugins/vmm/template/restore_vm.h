// SPDX-License-Identifier: Apache-2.0
//
// A VM of a template: restored, given its vsock device, and run until its agent has said hello;
// then it is paused. What makes it a pod's comes when it is taken (machine/machine_ready.cc).
#pragma once

#include <string>

#include <gantry/context.h>
#include <gantry/deadline.h>
#include <gantry/error.h>

#include "plugins/vmm/machine/machine.h"
#include "plugins/vmm/machine/means.h"
#include "plugins/vmm/machine/ready_vms.h"

namespace gantry::vmm {

/// `request`: as `Settle` leaves it; `snapshot`: of `MakeTemplate`, for the same key. On failure
/// nothing is left. Errors: those of a boot. Blocks: up to `deadline`.
Result<ReadyVm> RestoreVm(SandboxContext& context, const MachineMeans& means,
                          const MachineRequest& request, Accelerator accelerator,
                          const std::string& snapshot, Deadline deadline);

}  // namespace gantry::vmm
