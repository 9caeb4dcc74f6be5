// SPDX-License-Identifier: Apache-2.0
//
// What a change does to a file, for people. Thread: any. Blocks: never.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gantry::setup {

/// A unified diff of one hunk: from the first line that differs to the last. Nothing: there is no
/// such file. Empty where they are equal.
std::string UnifiedDiff(std::string_view path, const std::optional<std::string>& before,
                        const std::optional<std::string>& after);

}  // namespace gantry::setup
