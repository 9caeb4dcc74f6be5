// SPDX-License-Identifier: Apache-2.0
//
// Numbers with a unit, as people write them: in gantry.yaml and on command lines.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gantry::config {

/// Each: nothing where the text is something else, or the number does not fit.

/// A number without a unit.
std::optional<uint64_t> ParsePlain(std::string_view text);
/// In bytes; of "64KiB", "3 MiB", "1GiB", "17B", "17".
std::optional<uint64_t> ParseBytes(std::string_view text);
/// In milliseconds; of "100ms", "10s", "2m", "1h".
std::optional<uint64_t> ParseMillis(std::string_view text);

}  // namespace gantry::config
