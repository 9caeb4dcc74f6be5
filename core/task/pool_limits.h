// SPDX-License-Identifier: Apache-2.0
//
// How many workers there are, from the configuration.
#pragma once

#include <chrono>

#include "core/async/worker_queues.h"
#include "core/config/config.h"
#include "core/task/parts.h"

namespace gantry::task {

/// Of the workers, and of those of each backend. `grace`: a call that takes longer keeps nobody
/// else waiting.
inline async::PoolLimits PoolLimitsOf(const config::Limits& limits,
                                      std::chrono::milliseconds grace = kOverdueAfter) {
  /// So many times as many threads there are where calls take long.
  constexpr int kMostTimes = 4;
  /// What has no limit of its own: files, mounts, checkpoints.
  constexpr std::chrono::minutes kHangsAfter(10);
  return {.threads = limits.worker_threads,
          .queued = limits.max_queued_calls,
          .threads_of_one = limits.max_workers_per_sandbox,
          .queued_of_one = limits.max_queued_calls_per_sandbox,
          .most_threads = kMostTimes * limits.worker_threads,
          .slow_after = grace,
          .hangs_after = kHangsAfter};
}

}  // namespace gantry::task
