// SPDX-License-Identifier: Apache-2.0
//
// Taking a tree of mounts down.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <gantry/error.h>

namespace gantry::mount {

/// Whether something is mounted at `path` itself. An absent `path`: no. Errors and symlinks: as
/// of `UnmountTree`. Blocks: never for long.
Result<bool> IsMountPoint(const std::string& path);

/// What `UnmountTree` did.
struct UnmountReport {
  size_t unmounted = 0;
  /// Mounts that were busy and were detached (MNT_DETACH): gone from the tree,
  /// alive until their last user ends.
  std::vector<std::string> detached;
};

/// Unmounts everything at or below `path`, newest first. Symlinks in the last
/// part of `path` are not followed: a link there means that nothing is mounted.
/// Again: nothing to do, `unmounted` is 0. An absent `path` is no error.
/// Thread: blocking pool. Blocks: as long as the file systems do.
Result<UnmountReport> UnmountTree(const std::string& path);

/// Unmounts what a process that was killed in `MountAll` has left in `scratch_dir`, and removes
/// what it was mounted on; never what is in a directory. Not while another process may be mounting
/// there. Overlays that are mounted keep their layers: they do not need those names. An absent
/// `scratch_dir`: nothing to do. Errors: the first of what could not be removed; the others are.
/// Thread: blocking pool. Blocks: as `UnmountTree`.
Status ClearMountScratch(const std::string& scratch_dir);

}  // namespace gantry::mount
