// SPDX-License-Identifier: Apache-2.0
//
// CPU time and memory of sandboxes, read from their cgroups for the metrics. Many are read over
// several scrapes: each reads for a bounded time, those first that it is longest ago for, and has
// of the others what was read last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gantry/toolkit/cgroup/cgroup.h>

#include "core/async/clock.h"
#include "core/metrics/moment.h"

namespace gantry::engine {

/// A row, and the cgroups whose sum it is.
struct UsedBy {
  metrics::SandboxRow row;
  std::vector<cgroup::Cgroup> cgroups;
};

/// Thread: any, one at a time. Blocks: for about `limit`.
class SandboxUsage {
 public:
  explicit SandboxUsage(async::Duration limit, const async::Clock& clock = async::SteadyClock())
      : limit_(limit), clock_(clock) {}

  /// The rows, with what is known of each. Of sandboxes that are not among them nothing is kept.
  std::vector<metrics::SandboxRow> Read(std::vector<UsedBy> sandboxes);

  /// Of how many something is kept.
  size_t known() const { return known_.size(); }

 private:
  struct Known {
    std::optional<uint64_t> cpu_us;
    std::optional<uint64_t> memory_bytes;
    /// The number of the call that has read it last; 0: none has.
    uint64_t read_in = 0;
    /// That of the last call which has heard of it.
    uint64_t seen_in = 0;
  };

  const async::Duration limit_;
  const async::Clock& clock_;
  uint64_t call_ = 0;
  /// By namespace and id.
  std::map<std::pair<std::string, std::string>, Known> known_;
};

}  // namespace gantry::engine
