// SPDX-License-Identifier: Apache-2.0
//
// Taking apart the cgroups of a container that has ended, without the OCI
// runtime.
#pragma once

#include <string>
#include <vector>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/toolkit/cgroup/hierarchy.h>

namespace gantry::cgroup {

/// The directories of `path` in every hierarchy mounted below `root` that exist.
/// Empty for `/` and for paths with `..`.
Result<std::vector<std::string>> CgroupDirectories(const std::string& path,
                                                   const std::string& root = kCgroupRoot);

/// Lets frozen processes of v1 run, which otherwise take no SIGKILL, also those that are
/// frozen in a cgroup below.
void ThawCgroups(const std::vector<std::string>& directories);

/// What may be done to processes that are still there.
enum class Leftovers {
  /// They are the container's: killed.
  kKill,
  /// They are somebody else's: the cgroup stays.
  kSpare,
};

/// Removes the cgroups and all below them. Directories outside of `root`, or
/// directly in it, are left alone. Again: success.
/// Errors: kDeadlineExceeded when processes outlive SIGKILL; kFailedPrecondition
/// when some are there that must be spared. Blocks: until `deadline`.
Status RemoveCgroups(const std::vector<std::string>& directories, Leftovers leftovers,
                     Deadline deadline, const std::string& root = kCgroupRoot);

}  // namespace gantry::cgroup
