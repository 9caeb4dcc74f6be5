// SPDX-License-Identifier: Apache-2.0
//
// What the engine gives its metrics. The loop's state is copied on the loop, in one go; what has to
// be read from files, or asked of the keeper, is read on the metrics' own thread, and what backends
// count is asked on a worker and waited for a moment only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gantry/backend.h>
#include <gantry/toolkit/cgroup/cgroup.h>

#include "core/async/co.h"
#include "core/async/loop.h"
#include "core/async/worker_pool.h"
#include "core/backend/backends.h"
#include "core/backend/context.h"
#include "core/config/config.h"
#include "core/events/publisher.h"
#include "core/metrics/moment.h"
#include "core/metrics/pages.h"
#include "core/rpc/dispatcher.h"
#include "core/trace/spans.h"

namespace gantry::engine {

class SandboxUsage;
class Tasks;

/// Where the figures come from.
struct MetricsFrom {
  async::Loop& loop;
  async::WorkerPool& pool;
  const config::Config& config;
  const std::string& run_dir;
  const Tasks& tasks;
  const backend::Backends& backends;
  const backend::Counters& counters;
  const events::Publishers& publishers;
  const rpc::Dispatcher& dispatcher;
  const uint64_t& slow_turns;
  /// Null where none are made.
  const trace::Spans* spans;
};

/// Thread: loop.
class MetricsSource {
 public:
  /// All outlive it, and it outlives what `Look` gives.
  explicit MetricsSource(const MetricsFrom& from);
  MetricsSource(const MetricsSource&) = delete;
  MetricsSource& operator=(const MetricsSource&) = delete;
  ~MetricsSource() = default;

  /// To be called on any thread; calls what it is given on the loop's.
  metrics::Pages::Look Look();

 private:
  using Counts = std::map<std::string, std::vector<BackendCount>>;

  async::Task<void> Take(std::shared_ptr<SandboxUsage> usage, metrics::Pages::Done done);
  async::Task<void> ReadCounts(async::OneShot<void> done);
  metrics::Moment Now() const;
  void AddLives(metrics::Moment& moment) const;
  void AddCalls(metrics::Moment& moment) const;
  void AddQueues(metrics::Moment& moment) const;
  void AddBackends(metrics::Moment& moment) const;

  const MetricsFrom from_;
  const double started_at_;
  /// One call at a time: a backend that does not answer takes one worker, and no more.
  bool counting_ = false;
  async::OneShot<void> counted_;
  Counts counts_;
};

}  // namespace gantry::engine
