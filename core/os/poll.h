// SPDX-License-Identifier: Apache-2.0
//
// Waiting for one descriptor, for programs and threads without a loop.
#pragma once

#include <chrono>
#include <cstdint>

#include <gantry/error.h>

namespace gantry::os {

/// What holds of `events` (EPOLLIN, EPOLLOUT, ...), an error or a hang-up; 0
/// when nothing did within `limit`. A negative `limit` does not wait.
/// Owner: `fd` is borrowed. Thread: any. Blocks: up to `limit`.
Result<uint32_t> Poll(int fd, uint32_t events, std::chrono::nanoseconds limit);

}  // namespace gantry::os
