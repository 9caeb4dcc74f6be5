// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include <gantry/error.h>

namespace gantry {

/// A number in decimal digits and nothing else. Errors: kInvalidArgument.
Result<int64_t> ParseNumber(std::string_view text);

}  // namespace gantry
