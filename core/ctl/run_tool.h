// SPDX-License-Identifier: Apache-2.0
//
// Runs a tool, mostly to see what it says of itself.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <gantry/error.h>

namespace gantry::ctl {

inline constexpr size_t kMostToolOutput = size_t{1} << 20;

/// All that `argv` writes, up to 1 MiB; `argv[0]` is a path. A tool that does not end within
/// `limit` is killed; the kernel stops it where a file that it writes gets more than `most_bytes`.
/// Errors: kFailedPrecondition: it failed, with what it wrote; kDeadlineExceeded. Blocks: up to
/// `limit`.
Result<std::string> OutputOf(const std::vector<std::string>& argv, std::chrono::milliseconds limit,
                             size_t most_bytes = kMostToolOutput);

/// The first line that `argv` writes, at most 200 characters; `argv[0]` is a
/// path. A tool that does not end within `limit` is killed.
/// Errors: kFailedPrecondition: it failed; kDeadlineExceeded. Blocks: up to `limit`.
Result<std::string> FirstLineOf(const std::vector<std::string>& argv,
                                std::chrono::milliseconds limit = std::chrono::seconds(5));

}  // namespace gantry::ctl
