// SPDX-License-Identifier: Apache-2.0
//
// Disks of the machine as devices of a container: the host says which disk is which device, by an
// annotation (plugins/vmm/protocol/annotations.h), and only here it is known what its numbers are.
#pragma once

#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/cgroup/devices.h>
#include <gantry/toolkit/oci/spec.h>

namespace gantry::vmm::guest {

/// Gives the devices in `spec` their numbers, and says what of cgroups' rules they need. Errors:
/// kInvalidArgument: an annotation for what is no device of the container's, or no block device is
/// where it says. Thread: any. Blocks: briefly.
Result<std::vector<cgroup::DeviceRule>> NumberDisks(oci::Spec& spec);

}  // namespace gantry::vmm::guest
