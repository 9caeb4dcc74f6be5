// SPDX-License-Identifier: Apache-2.0
//
// The kernel's calls for mounts by descriptors, which need no path that somebody could exchange. A
// mount is made detached, gets what it has to have while nobody sees it, and is attached last.
//
// Descriptors are CLOEXEC; a detached mount ends with its descriptor. Errors: the kernel's.
// Source: open_tree(2), mount_setattr(2), move_mount(2), fsopen(2), Linux 5.12.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/mount/words.h>
#include <gantry/unique_fd.h>

namespace gantry::mount {

/// A detached copy of what is mounted at `path`, seen from the directory `dir`; with all below.
Result<UniqueFd> CloneTree(int dir, const std::string& path, bool recursive);
/// Of the file or directory that `opened` is.
Result<UniqueFd> CloneTreeOf(int opened, bool recursive);

/// `mount` is the root of a mount, as all below.
Status SetAttributes(int mount, const Attributes& attributes, bool recursive);
/// One after the other; 0 is none.
Status SetPropagation(int mount, const std::vector<Propagation>& propagation);
/// The owners of files are seen through a user namespace.
Status MapIds(int mount, int user_namespace, bool recursive);

/// A new file system: what fsconfig(2) is told of it, in this order; `key=value`, or a word alone.
struct FileSystem {
  std::string type;
  std::string source;
  std::vector<std::string> options;
};

/// Mounts it, detached; `attributes`: MOUNT_ATTR_*. Errors: with what the kernel says of them.
Result<UniqueFd> MountFileSystem(const FileSystem& file_system, uint64_t attributes);
/// Changes the file system that is mounted at `mount`.
Status Reconfigure(int mount, const FileSystem& file_system);

/// Puts a detached mount on what `target` is.
Status Attach(int mount, int target);
/// The same for the directory or file at `target`. Links are followed: it may be
/// /proc/self/fd/N.
Status AttachAt(int mount, const std::string& target);

}  // namespace gantry::mount
