// SPDX-License-Identifier: Apache-2.0
//
// What a template depends on: a VM that is restored from it is what a boot would have made only
// where all of this is the same.
#pragma once

#include <string>

#include <gantry/error.h>

#include "plugins/vmm/hypervisor/accelerator.h"
#include "plugins/vmm/machine/machine.h"

namespace gantry::vmm {

/// Of a request as `Settle` leaves it: VMM, kernel and initrd as files, the node's kernel and
/// processor, its microcode too, the accelerator, the VM's shape and command line, where VMs live
/// and as whom. One line of words for each. Errors: kFailedPrecondition: a file is not there; those
/// of `KernelCommandLine`. Blocks: on files.
Result<std::string> TemplateKey(const MachineRequest& request, Accelerator accelerator);

/// Of /proc/cpuinfo what a guest could notice of the first processor; its clock is none of it.
std::string ProcessorIn(const std::string& cpuinfo);

}  // namespace gantry::vmm
