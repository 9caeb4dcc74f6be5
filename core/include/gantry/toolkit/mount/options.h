// SPDX-License-Identifier: Apache-2.0
//
// The options of a mount of containerd's taken apart: what is a flag of the mount, what makes a
// loop device or an id mapping, and what is left for the file system.
#pragma once

#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/id_mapping.h>

namespace gantry::mount {

/// Thread: any.
struct MountOptions {
  /// MS_* without the propagation flags.
  unsigned long flags = 0;
  /// MS_SHARED, MS_PRIVATE, MS_SLAVE or MS_UNBINDABLE, perhaps with MS_REC; or 0.
  unsigned long propagation = 0;
  /// What the file system itself is told, in the order given.
  std::vector<std::string> data;
  bool loop = false;
  bool direct_io = false;
  /// Of `uidmap` and `gidmap`: ranges `container:host:size`, separated by commas.
  std::vector<IdMapping> uids;
  std::vector<IdMapping> gids;

  bool idmapped() const { return !uids.empty(); }

  /// `data` as mount(2) wants it.
  std::string JoinedData() const;
};

/// Later words win over earlier ones, as in mount(8).
/// Errors: kInvalidArgument for `X-containerd.*` words (which containerd's mount
/// manager must have consumed) and for one of uidmap and gidmap alone.
Result<MountOptions> ParseMountOptions(const std::vector<std::string>& options);

}  // namespace gantry::mount
