// SPDX-License-Identifier: Apache-2.0
//
// What is particular to cgroup v2. `Cgroup` (cgroup.h) is the way in; it has
// checked that the root is not meant.
#pragma once

#include <string>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/toolkit/cgroup/cgroup.h>

namespace gantry::cgroup::v2 {

Status Freeze(const std::string& dir, Deadline deadline);
Status Thaw(const std::string& dir, Deadline deadline);
Result<bool> Frozen(const std::string& dir);
Status Kill(const std::string& dir, Deadline deadline);

/// Makes the directory and those above it, each with all controllers that the
/// one above has. A controller that cannot be enabled is left out.
Status Create(const MountedCgroup& cgroup);

Status Update(const std::string& dir, const CgroupResources& resources);

}  // namespace gantry::cgroup::v2
