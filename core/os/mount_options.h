// SPDX-License-Identifier: Apache-2.0
//
// The words of mount(8) taken apart: what is a flag of the mount, what makes a
// loop device or an id mapping, and what is left for the file system.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>

namespace gantry::os {

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
  /// Ranges `container:host:size`, separated by commas.
  std::string uidmap;
  std::string gidmap;

  bool idmapped() const { return !uidmap.empty(); }

  /// `data` as mount(2) wants it.
  std::string JoinedData() const;
};

/// Later words win over earlier ones, as in mount(8).
/// Errors: kInvalidArgument for `X-containerd.*` words (which containerd's mount
/// manager must have consumed) and for one of uidmap and gidmap alone.
Result<MountOptions> ParseMountOptions(const std::vector<std::string>& options);

/// A range of ids. Source: user_namespaces(7).
struct IdRange {
  uint32_t inside = 0;
  uint32_t outside = 0;
  uint32_t count = 0;
};

/// `0:100000:65536,...`. Errors: kInvalidArgument.
Result<std::vector<IdRange>> ParseIdRanges(std::string_view text);

}  // namespace gantry::os
