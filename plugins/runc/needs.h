// SPDX-License-Identifier: Apache-2.0
//
// What this backend needs of the node, for `gantryctl doctor`.
#pragma once

#include <string>
#include <vector>

#include <gantry/backend.h>
#include <gantry/toolkit/cgroup/remove.h>

#include "plugins/runc/options.h"

namespace gantry::runc {

/// Blocks: up to 2 s for each program that is asked for its version.
std::vector<NodeNeed> FindNeeds(const Options& options,
                                const cgroup::NodeCgroups& node = cgroup::NodeCgroups::At());

/// The first line that `BINARY --version` prints; empty when there is none
/// within 2 s. The program is a child of the caller, who must not reap others'
/// children. Blocks: up to 2 s.
std::string AskVersion(const std::string& binary);

}  // namespace gantry::runc
