// SPDX-License-Identifier: Apache-2.0
//
// What may stand behind a double: a machine that does what its API is told.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <gantry/unique_fd.h>

namespace gantry::test {

/// Told of each request that the double's tables let through, before it is answered:
/// "vm.add-disk", "PUT /drives/d1". Gives why it fails all the same; empty: it is done. One at a
/// time.
using Behind = std::function<std::string(const std::string& request, const nlohmann::json& body,
                                         std::vector<UniqueFd>& fds)>;

}  // namespace gantry::test
