// SPDX-License-Identifier: Apache-2.0
//
// How the ids of a user namespace relate to those outside it.
#pragma once

#include <cstdint>

namespace gantry {

/// Ids from `container_id` on are those from `host_id` on, `length` of them.
/// Source: user_namespaces(7).
struct IdMapping {
  uint32_t host_id = 0;
  uint32_t container_id = 0;
  uint32_t length = 0;

  bool operator==(const IdMapping&) const = default;
};

}  // namespace gantry
