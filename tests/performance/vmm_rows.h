// SPDX-License-Identifier: Apache-2.0
//
// The rows of virtual machines. Without KVM they compare variants: a translated guest is no figure
// of a node's.
#pragma once

#include <string>
#include <vector>

#include <gantry/error.h>

#include "tests/performance/lab.h"
#include "tests/performance/report.h"
#include "tests/performance/rows.h"

namespace gantry::bench {

struct VmmGroup {
  std::vector<std::string> rows;
  Status (*measure)(Lab&, const Extent&, Report&);
};

const std::vector<VmmGroup>& VmmGroups();

/// Where the backend or what its guests boot is not there, a note says so.
Status MeasureVmm(Lab& lab, const VmmGroup& group, const Extent& extent, Report& report);

/// gantry with its vmm backend.
Side VmmSide(const Lab& lab);

/// vmm-boot: Create and Start of a pod's first container, against the same QEMU, kernel and initrd
/// started bare, until its first process says hello.
Status VmmBootRow(Lab& lab, const Extent& extent, Report& report);
/// vmm-exec
Status VmmExecRow(Lab& lab, const Extent& extent, Report& report);
/// vmm-host-memory
Status VmmMemoryRow(Lab& lab, const Extent& extent, Report& report);

}  // namespace gantry::bench
