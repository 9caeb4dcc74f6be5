// SPDX-License-Identifier: Apache-2.0
//
// Maps of ids, and user namespaces that exist to map the ids of mounts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>
#include <gantry/id_mapping.h>
#include <gantry/unique_fd.h>

namespace gantry::mount {

/// `0:100000:65536,...`: inside, outside, count. Source: mount(8), X-mount.idmap.
/// Errors: kInvalidArgument.
Result<std::vector<IdMapping>> ParseIdMappings(std::string_view text);

/// As `uid_map` and `gid_map` of /proc take them, in one write. Source: user_namespaces(7).
std::string IdMapText(const std::vector<IdMapping>& mappings);

/// A new user namespace with these mappings; it lives as long as the descriptor, which is CLOEXEC.
/// It is held by a process of its own, which is gone when this returns. Needs /proc, of this pid
/// namespace or one above it. Errors: kInvalidArgument: mappings that cannot be.
Result<UniqueFd> NewUserNamespace(const std::vector<IdMapping>& uids,
                                  const std::vector<IdMapping>& gids);

}  // namespace gantry::mount
