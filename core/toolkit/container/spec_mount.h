// SPDX-License-Identifier: Apache-2.0
//
// One mount of config.json: what is taken from the host beforehand, then the mount itself, in its
// place in the root.
#pragma once

#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/oci/spec.h>
#include <gantry/unique_fd.h>

#include "core/toolkit/container/cgroup_view.h"
#include "core/toolkit/container/mount_words.h"

namespace gantry::container {

/// What all mounts of one container have in common.
struct MountDefaults {
  /// Of binds, before what their own options say.
  mount::Propagation propagation;
  /// Of new file systems, for SELinux; empty: none.
  std::string label;
  /// The bundle: relative sources are relative to it.
  int bundle = -1;
  /// /dev is the container's own, so that a link in it is nobody's that may be there.
  bool own_dev = true;
  /// The mappings of a mount that has none and shall be mapped.
  std::vector<IdMapping> uid_mappings;
  std::vector<IdMapping> gid_mappings;
};

struct PreparedMount {
  oci::SpecMount mount;
  MountWords words;
  /// Of a bind: it, detached, with all its attributes.
  UniqueFd tree;
  /// Of the types cgroup and cgroup2.
  CgroupView cgroups;
  /// Links on the way to its place are refused.
  bool no_links = false;
};

/// `/a/b` for `a//b/.`; `..` goes up, never above the root. As text: links are not looked at.
std::string CleanPath(const std::string& path);

/// Errors: see rootfs.h; each names the mount.
Result<PreparedMount> PrepareMount(const oci::SpecMount& mount, const MountDefaults& defaults);

/// Again: it is mounted once more. A new file system that is to be read-only and that has to be
/// written first, by what comes after it, stays writable: its descriptor is added to `writable`.
/// The umask is 0.
Status MakeMount(int root, const PreparedMount& mount, const MountDefaults& defaults,
                 std::vector<UniqueFd>& writable);

}  // namespace gantry::container
