// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <gantry/format.h>

namespace gantry::e2e {

/// A command that needs so much memory in one piece. One that takes it bit by bit needs many
/// seconds in a sentry that is near its limit.
inline std::vector<std::string> TakeMemory(uint64_t bytes) {
  return {"dd", "if=/dev/zero", "of=/dev/null", Format("bs={}", bytes), "count=1"};
}

}  // namespace gantry::e2e
