// SPDX-License-Identifier: Apache-2.0
//
// User namespaces that exist to map the ids of mounts.
#pragma once

#include <vector>

#include <gantry/error.h>
#include <gantry/id_mapping.h>
#include <gantry/unique_fd.h>

namespace gantry::container {

/// A new user namespace with these mappings; it lives as long as the descriptor, which is CLOEXEC.
/// It is held by a process of its own, which is gone when this returns. Needs /proc, of this pid
/// namespace or one above it. Errors: kInvalidArgument: mappings that cannot be.
Result<UniqueFd> NewUserNamespace(const std::vector<IdMapping>& uids,
                                  const std::vector<IdMapping>& gids);

}  // namespace gantry::container
