// SPDX-License-Identifier: Apache-2.0
//
// What the backend needs of the node, for `gantryctl doctor`. Nothing is started but runsc's
// own help.
#pragma once

#include <vector>

#include <gantry/backend.h>

#include "plugins/gvisor/launch/runsc_registry.h"
#include "plugins/gvisor/options.h"

namespace gantry::gvisor {

/// For handlers with these options; what several of them need is told once.
/// Blocks: for runsc's answers. Thread: workers.
std::vector<NodeNeed> FindNeeds(const std::vector<Options>& handlers, RunscRegistry& runscs);

}  // namespace gantry::gvisor
