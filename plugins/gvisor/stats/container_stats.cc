// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/stats/container_stats.h"

#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/gvisor/sentry/sentry.h"

namespace gantry::gvisor {
namespace {

constexpr size_t kMaxLedger = 256;
constexpr mode_t kLedgerMode = 0600;

std::string What(const std::string& id) { return Format("measure container '{}'", id); }

std::unexpected<Error> Ended(const std::string& id) {
  return Fail(Code::kNotFound, "{}: it has ended", What(id));
}

std::unexpected<Error> Refused(const std::string& id, const urpc::Failure& failure) {
  return failure.cause == urpc::Cause::kGone ? Ended(id)
                                             : std::unexpected<Error>(ToError(failure, What(id)));
}

}  // namespace

Result<std::unique_lock<std::timed_mutex>> ContainerStats::Lock(Deadline deadline) {
  std::unique_lock lock(mutex_, Left(deadline));
  if (!lock.owns_lock()) {
    return Fail(Code::kDeadlineExceeded, "{}: another look at it has not ended", What(id_));
  }
  return lock;
}

Result<Usage> ContainerStats::AskForUsage(ContainerManager& sentry, Deadline deadline) const {
  auto usage = sentry.Event(id_, deadline);
  if (!usage && usage.error().cause == urpc::Cause::kRefused) {
    if (auto without_network = sentry.ReadUsage(id_, deadline)) {
      usage = std::move(without_network);
    }
  }
  if (!usage) {
    return Refused(id_, usage.error());
  }
  if (usage->processes == 0) {
    return Ended(id_);
  }
  return *std::move(usage);
}

Result<CpuTimes> ContainerStats::AskForCpu(ContainerManager& sentry, const Usage& usage,
                                           Deadline deadline) const {
  const auto times = sentry.ReadCpuTimes(id_, deadline);
  if (times) {
    return *times;
  }
  if (times.error().cause != urpc::Cause::kRefused || !usage.cpu) {
    return Refused(id_, times.error());
  }
  return *usage.cpu;
}

/// A file that is damaged is none: it is this class that writes it.
CpuLedger& ContainerStats::Ledger() {
  if (!ledger_) {
    kept_ = ReadFile(path_, kMaxLedger).value_or("");
    ledger_ = CpuLedger::FromText(kept_).value_or(CpuLedger());
  }
  return *ledger_;
}

uint64_t ContainerStats::Charge(const CpuTimes& times, const StatsPlace& place) {
  CpuLedger& ledger = Ledger();
  ledger.Add({.host_ns = cgroup::CpuTimeNs(place.cgroups), .sentry = times}, place.is_alone);
  if (std::string text = ledger.ToText(); text != kept_) {
    // Otherwise only the next engine would begin from less.
    kept_ = ReplaceFile(path_, text, kLedgerMode) ? std::move(text) : std::string();
  }
  return ledger.total_ns();
}

Status ContainerStats::Forget() const {
  GANTRY_CHECK_OK(RemoveUnfinished(path_));
  return RemoveFile(path_);
}

Result<ContainerMetrics> ContainerStats::Measure(ContainerManager& sentry, const StatsPlace& place,
                                                 Deadline deadline) {
  GANTRY_TRY(const auto lock, Lock(deadline));
  GANTRY_TRY(const Usage usage, AskForUsage(sentry, deadline));
  CpuTimes times = Ledger().sentry();
  // What the host has counted is all of one that is alone.
  if (!place.is_alone || !cgroup::CpuTimeNs(place.cgroups)) {
    GANTRY_TRY(times, AskForCpu(sentry, usage, deadline));
  }
  ContainerMetrics metrics;
  metrics.cpu.usage_ns = Charge(times, place);
  metrics.memory.usage_bytes = usage.memory_bytes;
  metrics.memory.limit_bytes = cgroup::MemoryLimitBytes(place.cgroups);
  metrics.pids.current = usage.processes;
  return metrics;
}

Result<ContainerMetrics> ContainerStats::MeasureIdle(ContainerManager* sentry,
                                                     const StatsPlace& place, bool out_of_memory,
                                                     Deadline deadline) {
  GANTRY_TRY(const auto lock, Lock(deadline));
  CpuTimes times = Ledger().sentry();
  if (sentry != nullptr) {
    // Its cgroup outlives it.
    times = sentry->ReadCpuTimes(id_, deadline).value_or(times);
  }
  ContainerMetrics metrics;
  metrics.cpu.usage_ns = Charge(times, place);
  metrics.memory.limit_bytes = cgroup::MemoryLimitBytes(place.cgroups);
  metrics.memory.oom_kills = out_of_memory ? 1 : 0;
  return metrics;
}

}  // namespace gantry::gvisor
