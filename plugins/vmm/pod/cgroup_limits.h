// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <gantry/error.h>

namespace gantry::vmm {

/// Of the cgroups of a container that a machine is started in: its limits of memory and processes
/// hold in the guest, and would leave no room for the machine around it, whose size bounds it.
/// Those of the pod above stay. `dirs`: of `ContainerContext::MakeCgroups`.
/// Blocks: on files. Thread: any.
Status LiftContainerLimits(const std::vector<std::string>& dirs);

}  // namespace gantry::vmm
