// SPDX-License-Identifier: Apache-2.0
//
// What a mount of type `cgroup` or `cgroup2` shows: the cgroups that this process is in.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "core/toolkit/container/mount_words.h"

namespace gantry::container {

/// One hierarchy: its cgroup, as a detached mount.
struct CgroupBind {
  /// As its mount is named on this node: `cpu,cpuacct`, `systemd`.
  std::string name;
  UniqueFd mount;
};

struct CgroupView {
  /// There is one hierarchy, of version 2, and it is mounted itself; else each is a folder.
  bool whole = false;
  std::vector<CgroupBind> binds;
};

/// The hierarchies of version 1; that of version 2 where there are none, or with `unified`.
/// `words` are what the mounts get.
/// Errors: kFailedPrecondition: no such file system is mounted here, or not where this process's
/// cgroup is seen.
Result<CgroupView> ViewOfOwnCgroups(bool unified, const MountWords& words);

/// A file system of folders for all of `view`, with links for the controllers that share one,
/// put on `target`. Errors: as of mount_calls.h.
Status AttachCgroupFolders(const CgroupView& view, const MountWords& words, int target);

}  // namespace gantry::container
