// SPDX-License-Identifier: Apache-2.0
//
// The options of a mount of config.json taken apart: what the mount gets, what the file system
// gets, and what is done here.
// Source: OCI runtime-spec 1.2, config.md, "Linux mount options"; mount_setattr(2).
#pragma once

#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/mount/words.h>
#include <gantry/toolkit/oci/spec.h>

namespace gantry::container {

struct MountWords {
  bool bind = false;
  /// Of a bind: with all that is mounted below.
  bool recursive = false;
  bool remount = false;
  mount::Attributes top;
  /// Of the mount and all below it.
  mount::Attributes tree;

  /// In the order in which they came.
  std::vector<mount::Propagation> propagation;
  /// Words that every file system knows: ro, sync and their like.
  std::vector<std::string> general;
  /// What is the file system's own.
  std::vector<std::string> data;
  bool copy_up = false;
  bool id_mapped = false;
  bool id_mapped_tree = false;

  bool read_only() const;
};

/// Later words win over earlier ones. Errors: kInvalidArgument: a bind has a word of a file system.
Result<MountWords> ReadMountWords(const oci::SpecMount& mount);

/// Gives the mount at `mount`, a descriptor of its root, what of `words` is the mount's and the
/// tree's. Errors: as of gantry/toolkit/mount/detached.h.
Status SetAttributes(int mount, const MountWords& words);

/// Of `rootfsPropagation`; private and recursive for an empty one. Errors: kInvalidArgument.
Result<mount::Propagation> ReadPropagation(const std::string& word);

}  // namespace gantry::container
