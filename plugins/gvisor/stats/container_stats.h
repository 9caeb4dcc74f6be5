// SPDX-License-Identifier: Apache-2.0
//
// Measuring one container: its memory and its processes as the sentry counts them, its part of
// the CPU time that the host has given the sandbox, and the limit of memory that ends it, which
// is the sandbox's.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/metrics.h>
#include <gantry/toolkit/cgroup/counters.h>

#include "plugins/gvisor/sentry/container_manager.h"
#include "plugins/gvisor/stats/cpu_ledger.h"

namespace gantry::gvisor {

/// What it is measured in.
struct StatsPlace {
  /// The sandbox's.
  cgroup::CgroupDirs cgroups;
  /// The container is all that the sandbox is for.
  bool is_alone = false;
};

/// Thread: any.
class ContainerStats {
 public:
  /// `bundle`: its own; `cpu` in it keeps the CPU time over a restart of the engine.
  ContainerStats(std::string id, const std::string& bundle)
      : id_(std::move(id)), path_(bundle + "/cpu") {}

  /// Of one that has been started. Errors: kNotFound: it has ended, or its sentry has;
  /// kInternal: the sentry's answer is none; kDeadlineExceeded. Blocks: up to `deadline`.
  Result<ContainerMetrics> Measure(ContainerManager& sentry, const StatsPlace& place,
                                   Deadline deadline);

  /// Of one without processes, because it has ended or was not started yet: what it had used
  /// until now. `sentry`: null: it has ended too, or has not heard of the container.
  /// Errors: kDeadlineExceeded. Blocks: up to `deadline`.
  Result<ContainerMetrics> MeasureIdle(ContainerManager* sentry, const StatsPlace& place,
                                       bool out_of_memory, Deadline deadline);

  /// Removes its file. Again: success.
  Status Forget() const;

 private:
  Result<std::unique_lock<std::timed_mutex>> Lock(Deadline deadline);
  Result<Usage> AskForUsage(ContainerManager& sentry, Deadline deadline) const;
  Result<CpuTimes> AskForCpu(ContainerManager& sentry, const Usage& usage, Deadline deadline) const;
  CpuLedger& Ledger();
  uint64_t Charge(const CpuTimes& times, const StatsPlace& place);

  const std::string id_;
  const std::string path_;
  /// Guards what follows, and is held from a sample's first look on: they are added in their
  /// order.
  std::timed_mutex mutex_;
  /// None: not read yet.
  std::optional<CpuLedger> ledger_;
  /// What is in the file; empty: nothing, or it is not known.
  std::string kept_;
};

}  // namespace gantry::gvisor
