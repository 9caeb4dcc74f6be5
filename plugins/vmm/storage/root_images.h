// SPDX-License-Identifier: Apache-2.0
//
// Whether a container's root, as the core has mounted it, is made of images that can be given to a
// guest as disks: the guest reads them itself then, many times faster than through virtiofs, and
// all guests of the node have one copy in the node's page cache.
//
//   erofs, squashfs          read-only images (or devices): of all guests together; the guest
//                            writes to a layer of its own
//   overlay of such images   the same
//   ext4 of a device         (devmapper, blockfile) the container's own, read and written: it must
//                            not be mounted by two kernels, so it is unmounted here first
//
// Whatever else it is goes through virtiofs, also where the layer for writing has something in it
// already: that would not be in the guest's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/mount/mount_info.h>

namespace gantry::vmm {

struct RootImage {
  /// A file or a block device of the host.
  std::string path{};
  std::string type{};

  bool operator==(const RootImage&) const = default;
};

struct RootImages {
  /// The uppermost first.
  std::vector<RootImage> layers{};
  /// The one layer is the container's own and can be written.
  bool own = false;
};

/// None: it is not made of images. `mounts`: all of this mount namespace. Blocks: on files.
std::optional<RootImages> FindRootImages(const std::vector<mount::MountPoint>& mounts,
                                         const std::string& rootfs);

/// The same of this mount namespace. Errors: of reading what is mounted.
Result<std::optional<RootImages>> FindRootImages(const std::string& rootfs);

/// The image at `rootfs`, which is `own`, is no longer mounted on this node by anybody. Errors:
/// kFailedPrecondition: it is mounted elsewhere, or in use; then it is not mounted at `rootfs`
/// either way. Blocks: until all is written.
Status ReleaseRoot(const std::string& rootfs, const RootImage& image);

}  // namespace gantry::vmm
