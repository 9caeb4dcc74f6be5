// SPDX-License-Identifier: Apache-2.0
//
// The options of a mount of config.json taken apart: what the mount gets, what the file system
// gets, and what is done here.
// Source: OCI runtime-spec 1.2, config.md, "Linux mount options"; mount_setattr(2).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/oci/spec.h>

namespace gantry::container {

/// MOUNT_ATTR_*; what is in neither stays as it is. A way to record access times that is set is
/// in `clear` whole, as mount_setattr(2) wants it.
struct MountAttributes {
  uint64_t set = 0;
  uint64_t clear = 0;

  bool empty() const { return set == 0 && clear == 0; }
};

struct MountWords {
  bool bind = false;
  /// Of a bind: with all that is mounted below.
  bool recursive = false;
  bool remount = false;
  MountAttributes top;
  /// Of the mount and all below it.
  MountAttributes tree;

  /// MS_SHARED, MS_SLAVE, MS_PRIVATE or MS_UNBINDABLE, and whether for all below it, in the
  /// order in which they came.
  struct Propagation {
    unsigned long type = 0;
    bool recursive = false;
  };

  std::vector<Propagation> propagation;
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

/// Of `rootfsPropagation`; private and recursive for an empty one. Errors: kInvalidArgument.
Result<MountWords::Propagation> ReadPropagation(const std::string& word);

}  // namespace gantry::container
