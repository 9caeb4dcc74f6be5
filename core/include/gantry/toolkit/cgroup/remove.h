// SPDX-License-Identifier: Apache-2.0
//
// Taking apart the cgroups of a container that has ended, without the OCI
// runtime. Statistics and the freezer are the core's.
#pragma once

#include <string>
#include <vector>

#include <gantry/deadline.h>
#include <gantry/error.h>

namespace gantry::cgroup {

/// Mount point of the cgroup tree. Source: systemd, docs/CGROUP_DELEGATION.md.
inline constexpr const char* kCgroupRoot = "/sys/fs/cgroup";

enum class CgroupMode { kNone, kV1, kHybrid, kV2 };

CgroupMode DetectCgroups(const std::string& root = kCgroupRoot);

/// The node's cgroups, as far as it matters to an OCI runtime whether it can work here.
struct NodeCgroups {
  CgroupMode mode = CgroupMode::kNone;
  /// Of kHybrid: the controllers that the v2 tree has, since no v1 hierarchy has them:
  /// "hugetlb misc". Empty: none.
  std::string unclaimed;

  /// As it is now: they may be mounted at any time. Blocks: for the kernel's files.
  static NodeCgroups At(const std::string& root = kCgroupRoot);
};

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
