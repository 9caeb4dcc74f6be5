// SPDX-License-Identifier: Apache-2.0
//
// What is particular to cgroup v1. `Cgroup` (cgroup.h) is the way in; it has
// checked that no root of a tree is meant.
#pragma once

#include <map>
#include <string>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/toolkit/cgroup/cgroup.h>

namespace gantry::cgroup::v1 {

/// `freezer` is a directory of the freezer tree.
Status Freeze(const std::string& freezer, Deadline deadline);
Status Thaw(const std::string& freezer, Deadline deadline);
Result<bool> Frozen(const std::string& freezer);

/// Makes the directory and those above it. In the cpuset tree each gets the CPUs
/// and memory nodes of the one above: a cpuset without takes no process.
Status Create(const MountedCgroup& cgroup, bool cpuset);

/// Of each tree the directory that is not a root, by controller.
Status Update(const std::map<std::string, MountedCgroup>& dirs, const CgroupResources& resources);

}  // namespace gantry::cgroup::v1
