// SPDX-License-Identifier: Apache-2.0
//
// The mounts that containerd asks for on a bundle's rootfs, and taking a tree of
// mounts down again. Not for the mounts inside a container: the runtime makes
// those in the container's own mount namespace.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>

namespace gantry::os {

/// One mount as containerd describes it: `types.Mount`, options as in mount(8).
struct Mount {
  std::string type{};
  std::string source{};
  /// Relative to the rootfs, empty for the rootfs itself.
  std::string target{};
  std::vector<std::string> options{};
};

/// Mounts `mounts` in order on `rootfs_dir`, which is created with mode 0711 if
/// absent. A `target` is looked up inside `rootfs_dir`: no symlink and no `..`
/// leads out of it; it is not created.
/// Understood beside the flag and propagation words of mount(8): `loop` with
/// `ro` and `direct-io`, `uidmap=C:H:S`, `gidmap=C:H:S`. Overlay options may be
/// longer than a page. `scratch_dir` is where lower layers of an overlay are mounted with their ids
/// mapped for as long as it takes to mount the overlay; made with mode 0700 if it is needed, its
/// parent is there. See `ClearMountScratch`.
/// Errors: kInvalidArgument for options that cannot be (also `X-containerd.*`),
/// kUnimplemented for `fuse.*` types, otherwise the errno's code; the message
/// names index, type and source of the mount. Nothing stays mounted then.
/// Thread: blocking pool. Blocks: as long as the file systems do.
Status MountAll(const std::string& rootfs_dir, const std::vector<Mount>& mounts,
                const std::string& scratch_dir);

/// Unmounts what a process that was killed in `MountAll` has left in `scratch_dir`, and removes
/// what it was mounted on; never what is in a directory. Not while another process may be mounting
/// there. Overlays that are mounted keep their layers: they do not need those names. An absent
/// `scratch_dir`: nothing to do. Errors: the first of what could not be removed; the others are.
/// Thread: blocking pool. Blocks: as `UnmountTree`.
Status ClearMountScratch(const std::string& scratch_dir);

/// One line of mountinfo. Source: proc_pid_mountinfo(5).
struct MountPoint {
  uint64_t id = 0;
  uint64_t parent_id = 0;
  /// What of the file system is mounted, `/` for all of it.
  std::string root;
  std::string path;
  std::string type;
  std::string source;
  std::string options;
  std::string super_options;
};

/// Reads the text of a mountinfo file; lines that are malformed are left out.
std::vector<MountPoint> ParseMountInfo(std::string_view text);

/// The mounts at or below the absolute path `below` in this process's mount
/// namespace, oldest first. `below` is compared as text: it must be canonical.
/// Blocks: never for long (reads /proc only).
Result<std::vector<MountPoint>> ListMounts(std::string_view below);

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

}  // namespace gantry::os
