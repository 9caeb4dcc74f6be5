// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/vmm_rows.h"

#include "tests/performance/vmm_lab.h"

namespace gantry::bench {

const std::vector<VmmGroup>& VmmGroups() {
  static const std::vector<VmmGroup> groups{
      {{"vmm-boot"}, VmmBootRow},
      {{"vmm-template", "vmm-ready"}, VmmTemplateRows},
      {{"vmm-container"}, VmmContainerRow},
      {{"vmm-exec"}, VmmExecRow},
      {{"vmm-stdout"}, VmmStdoutRow},
      {{"vmm-vsock-out", "vmm-vsock-in", "vmm-vsock-echo", "vmm-vsock-dial"}, VmmVsockRows},
      {{"vmm-rootfs", "vmm-rootfs-warm"}, VmmRootfsRows},
      {{"vmm-host-memory", "vmm-host-memory-block"}, VmmMemoryRows},
      {{"vmm-agent", "vmm-agent-container"}, VmmAgentRows},
  };
  return groups;
}

Status MeasureVmm(Lab& lab, const VmmGroup& group, const Extent& extent, Report& report) {
  if (const std::string missing = WithoutVmm(lab); !missing.empty()) {
    report.AddNote(group.rows.front() + ": skipped: " + missing);
    return {};
  }
  return group.measure(lab, extent, report);
}

}  // namespace gantry::bench
