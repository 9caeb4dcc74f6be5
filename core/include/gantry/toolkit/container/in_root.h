// SPDX-License-Identifier: Apache-2.0
//
// Paths inside the root file system of a container, whose image and volumes may be full of links:
// each is looked up as a process sees it whose root that is. No link, no `..`, no link of /proc
// and nobody who exchanges directories meanwhile leads out of it. Whoever has such a descriptor
// goes on by it, never by the path again.
// Source: openat2(2), RESOLVE_IN_ROOT and RESOLVE_NO_MAGICLINKS, Linux 5.6.
//
// Descriptors are O_PATH and CLOEXEC. Errors are the kernel's, but for: kFailedPrecondition: what
// is there is not what it has to be, or a link is there that must not be;
// kAborted: somebody keeps moving directories about while they are looked up.
// Thread: any. Blocks: as the file system does.
#pragma once

#include <sys/types.h>

#include <string>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::container {

/// What links on the way to a path do.
enum class Links {
  /// They lead to where they lead a process of the container.
  kFollow,
  /// There may be none.
  kRefuse,
};

/// What is at `path` in the root `root`, which is a descriptor of a directory. `path` may begin
/// with a slash, or not; it is the same.
Result<UniqueFd> OpenInRoot(int root, const std::string& path, Links links = Links::kFollow);

/// The directory at `path`; what is missing of it is made with `mode` less the umask. With
/// `Links::kFollow` a link to nothing is followed, too: what it names is made.
Result<UniqueFd> MakeDirectoryInRoot(int root, const std::string& path, mode_t mode,
                                     Links links = Links::kFollow);

/// The same for what is no directory: where there is nothing, an empty file is made, and the
/// directories before it with 0755, all less the umask. What is there may be anything but a
/// directory.
Result<UniqueFd> MakeFileInRoot(int root, const std::string& path, mode_t mode,
                                Links links = Links::kFollow);

}  // namespace gantry::container
