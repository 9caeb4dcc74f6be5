// SPDX-License-Identifier: Apache-2.0
//
// How much of a sandbox's CPU time is a container's. The host knows what the sandbox has used,
// its sentry and gofers included, and not for whom. The sentry knows for whom, by its own clock:
// it counts in ticks, what waits for a CPU too, and nothing of its own work. So what the host
// has given since the last look is divided as the sentry has counted since then, and the parts
// are added up: a sum of what was never negative does not run backwards, whatever the shares
// and the sentry's counters do. What a sentry uses while no container runs is nobody's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <gantry/error.h>

#include "plugins/gvisor/sentry/container_manager.h"

namespace gantry::gvisor {

/// What is known at one time.
struct CpuSample {
  /// Of the sandbox's cgroup; none: it has no cgroup, and the sentry's word is taken.
  std::optional<uint64_t> host_ns;
  CpuTimes sentry;
};

/// Of one container. Thread: one at a time.
class CpuLedger {
 public:
  /// Adds what the container has used since the sample before; of the first, since its sandbox
  /// was made. Samples come in the order in which they were taken. `is_alone`: no other
  /// container can be in the sandbox, so all of it is this one's.
  void Add(const CpuSample& sample, bool is_alone);

  /// What the sentry had counted at the last sample.
  const CpuTimes& sentry() const { return sentry_; }

  /// Never less than before, and never 0: metrics-server takes a container without CPU time for
  /// one that was not measured, and shows nothing of its pod.
  uint64_t total_ns() const;

  /// For a file that outlives the engine.
  std::string ToText() const;
  /// Errors: kDataLoss: something else.
  static Result<CpuLedger> FromText(std::string_view text);

 private:
  uint64_t charged_ns_ = 0;
  /// Of the last sample.
  uint64_t host_ns_ = 0;
  CpuTimes sentry_;
};

}  // namespace gantry::gvisor
