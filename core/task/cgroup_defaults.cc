// SPDX-License-Identifier: Apache-2.0
//
// Each call asks the backend first. What it leaves out (kUnimplemented) is done with the
// container's cgroup, where it has one.
#include "core/task/cgroup_defaults.h"

#include <csignal>

#include <gantry/toolkit/cgroup/cgroup.h>
#include <gantry/toolkit/oci/resources.h>

#include "core/cgroup/scope_update.h"
#include "core/cgroup/weight_formula.h"
#include "core/oci/bundle_spec.h"

namespace gantry::task {
namespace {

/// About what fits into one answer; told, and let go, before the loop has it in its hands.
constexpr size_t kMostProcesses = 500'000;

/// As whoever made the container makes its weight of shares: by the weight that it got for
/// the shares of its config.json; by that of `asked`, where this is set already and only the
/// record was not written. Else as runtimes do it today.
cgroup::CpuWeightFormula ChooseFormula(const CgroupUpdate& update, const cgroup::Cgroup& cgroup,
                                       uint64_t asked) {
  const auto spec = oci::ReadSpec(update.bundle, update.max_spec_bytes);
  const auto limits = spec ? oci::ResourcesOf(*spec) : std::unexpected(spec.error());
  const uint64_t first = limits ? limits->cpu.shares.value_or(0) : 0;
  return cgroup::FindWeightFormula(update.node, cgroup, {first, asked})
      .value_or(cgroup::CpuWeightFormula::kQuadratic);
}

}  // namespace

bool IsLeftOut(const Status& status) {
  return !status && status.error().code == Code::kUnimplemented;
}

Status CgroupDefaults::KillAll(uint32_t signal, std::chrono::milliseconds limit) const {
  Status status = Fail(Code::kUnimplemented, "no backend");
  if (call_.container) {
    status =
        call_.OnContainer([signal](gantry::Container& object) { return object.KillAll(signal); });
  }
  if (!IsLeftOut(status)) {
    return status;
  }
  if (call_.cgroup.empty() || !call_.cgroup.Exists()) {
    return {};
  }
  return signal == SIGKILL ? call_.cgroup.Kill(limit)
                           : call_.cgroup.Signal(static_cast<int>(signal));
}

Status CgroupDefaults::Pause(std::chrono::milliseconds limit) const {
  Status status = call_.OnContainer([](gantry::Container& object) { return object.Pause(); });
  return IsOurs(status) ? call_.cgroup.Freeze(limit) : status;
}

Status CgroupDefaults::Resume(std::chrono::milliseconds limit) const {
  Status status = call_.OnContainer([](gantry::Container& object) { return object.Resume(); });
  return IsOurs(status) ? call_.cgroup.Thaw(limit) : status;
}

Status CgroupDefaults::Update(const std::string& json, CgroupUpdate& update) const {
  Status status =
      call_.OnContainer([&json](gantry::Container& object) { return object.Update(json); });
  if (!IsOurs(status)) {
    return status;
  }
  const uint64_t shares = update.resources.cpu.shares.value_or(0);
  if (shares != 0 && call_.cgroup.is_unified()) {
    if (!update.formula) {
      update.formula = ChooseFormula(update, call_.cgroup, shares);
    }
    update.resources.cpu.weight_formula = *update.formula;
  }
  return cgroup::UpdateWithScope(update.node, call_.cgroup, update.resources);
}

Result<stats::TypedMessage> CgroupDefaults::Stats(cgroup::CgroupMode node) const {
  Result<ContainerMetrics> measured = Fail(Code::kUnimplemented, "no backend");
  if (call_.container) {
    measured = call_.OnContainer([](gantry::Container& object) { return object.Stats(); });
  }
  if (IsOurs(measured)) {
    return stats::ReadMetrics(call_.cgroup);
  }
  GANTRY_CHECK_OK(measured);
  return stats::Encode(*measured, node);
}

Result<std::vector<ProcessInfo>> CgroupDefaults::Processes() const {
  auto listed = call_.OnContainer([](gantry::Container& object) { return object.Processes(); });
  if (listed && listed->size() > kMostProcesses) {
    return Fail(Code::kResourceExhausted,
                "list processes: its backend names {}, more than {} are not told", listed->size(),
                kMostProcesses);
  }
  if (!IsOurs(listed)) {
    return listed;
  }
  std::vector<ProcessInfo> processes;
  if (call_.cgroup.Exists()) {
    GANTRY_TRY(const std::vector<pid_t> pids, call_.cgroup.Procs());
    for (const pid_t pid : pids) {
      processes.push_back({static_cast<uint32_t>(pid), ExecId()});
    }
  }
  return processes;
}

}  // namespace gantry::task
