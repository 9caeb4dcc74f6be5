// SPDX-License-Identifier: Apache-2.0
//
// The parts of the engine that the Task service works with, made and owned by
// the daemon.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <gantry/backend.h>
#include <gantry/error.h>

#include "core/async/worker_pool.h"
#include "core/backend/context.h"
#include "core/backend/services.h"
#include "core/config/config.h"
#include "core/events/publisher.h"
#include "core/io/relay.h"

namespace gantry::task {

/// A backend that is ready for use.
struct BackendRef {
  std::string name;
  SandboxBackend* backend = nullptr;
};

/// How long after its deadline a backend's call counts as one that hangs.
inline constexpr std::chrono::milliseconds kOverdueAfter = std::chrono::seconds(3);

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

struct Parts {
  backend::Services services;
  const config::Config& config;
  io::Relay& relay;
  events::Publishers& publishers;
  backend::Counters& counters;
  /// The backend of that name, loaded now if it was not. Errors: why it cannot
  /// be used. Thread: workers.
  std::function<Result<BackendRef>(std::string_view name)> find_backend;
  /// Why the configuration could not be used; then nothing new is created.
  std::string config_error;
  std::chrono::milliseconds overdue_after = kOverdueAfter;
  /// For `mount::MountAll`; the engine's own.
  std::string mount_scratch{};
};

}  // namespace gantry::task
