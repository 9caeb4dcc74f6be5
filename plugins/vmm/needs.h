// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <gantry/backend.h>

#include "plugins/vmm/hypervisor/accelerator.h"
#include "plugins/vmm/options.h"

namespace gantry::vmm {

/// What the backend needs of the node for a handler with these options. `found`: what the canary
/// showed; `images`: where kernel and initrd are installed. Blocks: up to 2 s for each program.
std::vector<NodeNeed> FindNeeds(const VmmOptions& options, const Acceleration& found,
                                const std::string& images);

}  // namespace gantry::vmm
