// SPDX-License-Identifier: Apache-2.0
//
// Runs a tool to see what it says of itself.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <gantry/error.h>

namespace gantry::ctl {

/// The first line that `argv` writes, at most 200 characters; `argv[0]` is a
/// path. A tool that does not end within `limit` is killed.
/// Errors: kFailedPrecondition: it failed; kDeadlineExceeded. Blocks: up to `limit`.
Result<std::string> FirstLineOf(const std::vector<std::string>& argv,
                                std::chrono::milliseconds limit = std::chrono::seconds(5));

}  // namespace gantry::ctl
