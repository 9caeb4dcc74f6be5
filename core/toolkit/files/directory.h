// SPDX-License-Identifier: Apache-2.0
//
// Steps in a tree of directories that somebody may be changing.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <string>

#include <gantry/error.h>

namespace gantry {

inline constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;

/// Which directory it is, whatever its name.
struct DirectoryIdentity {
  dev_t device = 0;
  ino_t inode = 0;

  bool operator==(const DirectoryIdentity&) const = default;
};

/// `name` is for the error.
Result<DirectoryIdentity> IdentityOf(int fd, const std::string& name);

/// Opens the directory `name` in `dir`, unless something is mounted there (EXDEV).
/// A descriptor, or -1 and `errno`.
int OpenWithoutMount(int dir, const char* name);

}  // namespace gantry
