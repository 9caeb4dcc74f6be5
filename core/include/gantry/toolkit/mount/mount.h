// SPDX-License-Identifier: Apache-2.0
//
// The mounts that containerd asks for on a bundle's rootfs. Not for the mounts inside a container:
// the runtime makes those in the container's own mount namespace.
#pragma once

#include <string>
#include <vector>

#include <gantry/error.h>

namespace gantry::mount {

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

}  // namespace gantry::mount
