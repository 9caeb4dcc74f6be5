// SPDX-License-Identifier: Apache-2.0
//
// The words of mount(8), as mount(2) and mount_setattr(2) take them: containerd has them in the
// options of a rootfs, config.json in those of a container's mounts.
// Source: mount(8), mount(2), mount_setattr(2); OCI runtime-spec 1.2, config.md, "Linux mount
// options". Thread: any.
#pragma once

#include <cstdint>
#include <string_view>

namespace gantry::mount {

/// MOUNT_ATTR_*; what is in neither stays as it is. A way to record access times that is set is
/// in `clear` whole, as mount_setattr(2) wants it.
struct Attributes {
  uint64_t set = 0;
  uint64_t clear = 0;

  bool empty() const { return set == 0 && clear == 0; }

  /// `later` wins.
  void Add(const Attributes& later) {
    set = (set & ~later.clear) | later.set;
    clear = (clear & ~later.set) | later.clear;
  }

  bool operator==(const Attributes&) const = default;
};

struct Word {
  enum class Of {
    /// A place in the tree: one file system may be mounted with it here, and without it there.
    kMount,
    /// The file system, wherever it is mounted. fsconfig(2) knows it by its name.
    kFileSystem,
    /// The call of mount(2): bind and remount, and what changes nothing that is mounted.
    kCall,
  };

  std::string_view name;
  Of of = Of::kMount;
  /// MS_*.
  unsigned long set = 0;
  unsigned long clear = 0;
  /// The same of `kMount`, for mount_setattr(2).
  Attributes attributes;
};

/// Null: `name` is none of these.
const Word* FindWord(std::string_view name);

/// MOUNT_ATTR_* of the MS_* in `flags` that are of `kMount`.
uint64_t AttributesOf(unsigned long flags);

/// How mounts and unmounts below a mount spread. Source: mount_namespaces(7).
struct Propagation {
  /// MS_SHARED, MS_SLAVE, MS_PRIVATE or MS_UNBINDABLE; 0: stays what it is.
  unsigned long type = 0;
  /// Of all mounts below, too.
  bool recursive = false;

  /// As mount(2) takes it.
  unsigned long flags() const;

  bool operator==(const Propagation&) const = default;
};

/// `rslave` and its like. Null: `name` is none of these.
const Propagation* FindPropagation(std::string_view name);

}  // namespace gantry::mount
