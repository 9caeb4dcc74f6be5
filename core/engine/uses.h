// SPDX-License-Identifier: Apache-2.0
//
// What cgroups use, read for operators: within a second, since they look when something hangs.
#pragma once

#include <cstdint>
#include <vector>

#include <gantry/toolkit/cgroup/cgroup.h>

#include "core/async/co.h"
#include "core/async/loop.h"
#include "core/async/worker_pool.h"

namespace gantry::engine {

/// What takes time is done there.
struct Workers {
  async::Loop& loop;
  async::WorkerPool& pool;
};

/// Of one cgroup; 0: not known.
struct Use {
  uint64_t memory = 0;
  uint64_t cpu_ns = 0;
  uint64_t pids = 0;
};

enum class Wanted { kMemory, kAll };

/// One for each, in their order; all 0 where that takes too long, as while all workers are busy.
/// Thread: loop.
async::Task<std::vector<Use>> UsesOf(Workers workers, std::vector<cgroup::Cgroup> cgroups,
                                     Wanted wanted);

/// Of one. Thread: loop.
async::Task<uint64_t> MemoryOf(Workers workers, cgroup::Cgroup cgroup);

}  // namespace gantry::engine
