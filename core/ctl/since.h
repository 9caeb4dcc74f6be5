// SPDX-License-Identifier: Apache-2.0
//
// Times as --since says them.
#pragma once

#include <cstdint>
#include <string>

#include <gantry/error.h>

namespace gantry::ctl {

/// `30s`, `10m`, `2h`, `7d`: so long before `now_ns`. Or a time as `TimeText` writes it, with fewer
/// digits or without those of the second's parts, in UTC. Gives nanoseconds since 1970.
/// Errors: kInvalidArgument.
Result<int64_t> ParseSince(const std::string& text, int64_t now_ns);

}  // namespace gantry::ctl
