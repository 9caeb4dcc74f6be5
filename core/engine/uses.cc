// SPDX-License-Identifier: Apache-2.0
#include "core/engine/uses.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include <gantry/toolkit/cgroup/counters.h>
#include <gantry/toolkit/cgroup/statistics.h>

namespace gantry::engine {
namespace {

constexpr std::chrono::seconds kUseLimit(1);

Use UseOf(const cgroup::Cgroup& cgroup, Wanted wanted) {
  Use use{.memory = cgroup::ReadMemoryUse(cgroup).value_or(0)};
  if (wanted == Wanted::kAll) {
    use.cpu_ns = cgroup::CpuTimeNs(cgroup.Dirs()).value_or(0);
    if (const std::string dir = cgroup.DirOf("pids"); !dir.empty()) {
      use.pids = cgroup::ReadNumber(dir + "/pids.current").value_or(0);
    }
  }
  return use;
}

using Uses = std::vector<Use>;

async::Task<void> ReadUses(async::WorkerPool& pool, std::vector<cgroup::Cgroup> cgroups,
                           Wanted wanted, async::OneShot<Uses> done) {
  auto read = co_await pool.Run([&cgroups, wanted]() -> Result<Uses> {
    Uses uses;
    uses.reserve(cgroups.size());
    for (const cgroup::Cgroup& cgroup : cgroups) {
      uses.push_back(UseOf(cgroup, wanted));
    }
    return uses;
  });
  done.Set(read ? std::move(*read) : Uses(cgroups.size()));
}

}  // namespace

async::Task<std::vector<Use>> UsesOf(Workers workers, std::vector<cgroup::Cgroup> cgroups,
                                     Wanted wanted) {
  const size_t count = cgroups.size();
  async::OneShot<Uses> done;
  async::Start(ReadUses(workers.pool, std::move(cgroups), wanted, done));
  const std::optional<Uses> uses = co_await async::WithDeadline(workers.loop, kUseLimit, done);
  co_return uses.value_or(Uses(count));
}

async::Task<uint64_t> MemoryOf(Workers workers, cgroup::Cgroup cgroup) {
  const Uses uses = co_await UsesOf(workers, {std::move(cgroup)}, Wanted::kMemory);
  co_return uses.front().memory;
}

}  // namespace gantry::engine
