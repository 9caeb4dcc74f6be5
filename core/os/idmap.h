// SPDX-License-Identifier: Apache-2.0
//
// Id-mapped mounts: the owners of files are seen through a user namespace's
// mapping. Source: mount_setattr(2), MOUNT_ATTR_IDMAP, Linux 5.12.
#pragma once

#include <string>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::os {

/// A new user namespace with these ranges (see `ParseIdRanges`); lives as long as
/// the descriptor. Errors: kInvalidArgument for ranges that cannot be.
/// Thread: any. Blocks: never for long; starts a process and ends it.
Result<UniqueFd> CreateUserNamespace(const std::string& uidmap, const std::string& gidmap);

/// A detached copy of the mount at `path` (`recursive`: with all below) that is
/// mapped through `user_namespace`. Errors: the errno's; EINVAL where a file
/// system cannot.
Result<UniqueFd> CloneIdmapped(const std::string& path, int user_namespace, bool recursive);

/// Puts a detached mount on the directory or file `target`. Links are followed: `target` may be
/// /proc/self/fd/N.
Status AttachMount(int mount, const std::string& target);

}  // namespace gantry::os
