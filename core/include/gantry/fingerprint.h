// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace gantry {

/// FNV-1a: short names for long ones, the same in each build. Not against somebody who looks
/// for two texts with the same one.
uint64_t Fingerprint(std::string_view text, uint64_t seed = 0);

}  // namespace gantry
