// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/gvisor_rows.h"

namespace gantry::bench {

const std::vector<GvisorGroup>& GvisorGroups() {
  static const std::vector<GvisorGroup> groups{
      {{"gvisor-pod", "gvisor-delete"}, GvisorPodRows},
      {{"gvisor-pod-warm"}, GvisorWarmRow, kWarmSandboxes},
      {{"gvisor-container"}, GvisorContainerRow},
      {{"gvisor-start"}, GvisorStartRow},
      {{"gvisor-container-erofs"}, GvisorErofsRow},
      {{"gvisor-exec", "gvisor-exec-parallel"}, GvisorExecRows},
      {{"gvisor-stats"}, GvisorStatsRow},
      {{"gvisor-state"}, GvisorStateRow},
      {{"gvisor-kill"}, GvisorKillRow},
      {{"gvisor-processes", "gvisor-executions", "gvisor-executions-erofs"}, GvisorProcessRows},
      {{"gvisor-shim-memory"}, GvisorMemoryRow},
  };
  return groups;
}

Status MeasureGvisor(Lab& lab, const GvisorGroup& group, const GvisorRelease& release,
                     const Extent& extent, Report& report) {
  if (const std::string missing = WithoutGvisor(lab, release); !missing.empty()) {
    report.AddNote(release.RowId(group.rows.front()) + ": skipped: " + missing);
    return {};
  }
  GANTRY_TRY(const auto gvisor, GvisorLab::Make(lab, release, group.warm));
  return group.measure(*gvisor, release, extent, report);
}

}  // namespace gantry::bench
