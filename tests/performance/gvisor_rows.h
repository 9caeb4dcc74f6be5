// SPDX-License-Identifier: Apache-2.0
//
// The rows of gVisor: gantry's calls against the command line of the same build of runsc.
// Each function measures its rows with one release.
#pragma once

#include <string>
#include <vector>

#include <gantry/error.h>

#include "tests/performance/gvisor_lab.h"
#include "tests/performance/report.h"
#include "tests/performance/rows.h"

namespace gantry::bench {

using GvisorMeasure = Status (*)(GvisorLab&, const GvisorRelease&, const Extent&, Report&);

/// Sandboxes that gantry boots ahead for gvisor-pod-warm.
inline constexpr int kWarmSandboxes = 2;

struct GvisorGroup {
  std::vector<std::string> rows;
  GvisorMeasure measure;
  /// Sandboxes that gantry is to boot ahead.
  int warm = 0;
};

const std::vector<GvisorGroup>& GvisorGroups();

/// With the release if it is there, else a note says that it is not.
Status MeasureGvisor(Lab& lab, const GvisorGroup& group, const GvisorRelease& release,
                     const Extent& extent, Report& report);

/// gvisor-pod, gvisor-delete
Status GvisorPodRows(GvisorLab& lab, const GvisorRelease& release, const Extent& extent,
                     Report& report);
/// gvisor-pod-warm
Status GvisorWarmRow(GvisorLab& lab, const GvisorRelease& release, const Extent& extent,
                     Report& report);
/// gvisor-container; gvisor-start
Status GvisorContainerRow(GvisorLab& lab, const GvisorRelease& release, const Extent& extent,
                          Report& report);
Status GvisorStartRow(GvisorLab& lab, const GvisorRelease& release, const Extent& extent,
                      Report& report);
/// gvisor-container-erofs
Status GvisorErofsRow(GvisorLab& lab, const GvisorRelease& release, const Extent& extent,
                      Report& report);
/// gvisor-exec, gvisor-exec-parallel
Status GvisorExecRows(GvisorLab& lab, const GvisorRelease& release, const Extent& extent,
                      Report& report);
/// gvisor-stats; gvisor-state; gvisor-kill
Status GvisorStatsRow(GvisorLab& lab, const GvisorRelease& release, const Extent& extent,
                      Report& report);
Status GvisorStateRow(GvisorLab& lab, const GvisorRelease& release, const Extent& extent,
                      Report& report);
Status GvisorKillRow(GvisorLab& lab, const GvisorRelease& release, const Extent& extent,
                     Report& report);
/// gvisor-processes, gvisor-executions, gvisor-executions-erofs
Status GvisorProcessRows(GvisorLab& lab, const GvisorRelease& release, const Extent& extent,
                         Report& report);
/// gvisor-shim-memory
Status GvisorMemoryRow(GvisorLab& lab, const GvisorRelease& release, const Extent& extent,
                       Report& report);

}  // namespace gantry::bench
