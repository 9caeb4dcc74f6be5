// SPDX-License-Identifier: Apache-2.0
//
// The rows of virtual machines. Without KVM they compare variants: a translated guest is no figure
// of a node's.
#pragma once

#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

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

/// vmm-boot: Create and Start of a pod's first container, against the same QEMU, kernel and initrd
/// started bare, until its first process says hello.
Status VmmBootRow(Lab& lab, const Extent& extent, Report& report);
/// vmm-template, vmm-ready: a machine that is restored, one that waited, against a boot.
Status VmmTemplateRows(Lab& lab, const Extent& extent, Report& report);
/// vmm-container
Status VmmContainerRow(Lab& lab, const Extent& extent, Report& report);
/// vmm-exec
Status VmmExecRow(Lab& lab, const Extent& extent, Report& report);
/// vmm-stdout
Status VmmStdoutRow(Lab& lab, const Extent& extent, Report& report);
/// vmm-vsock-out, vmm-vsock-in, vmm-vsock-echo, vmm-vsock-dial
Status VmmVsockRows(Lab& lab, const Extent& extent, Report& report);
/// vmm-rootfs, vmm-rootfs-warm
Status VmmRootfsRows(Lab& lab, const Extent& extent, Report& report);
/// vmm-host-memory, vmm-host-memory-block
Status VmmMemoryRows(Lab& lab, const Extent& extent, Report& report);
/// vmm-agent, vmm-agent-container
Status VmmAgentRows(Lab& lab, const Extent& extent, Report& report);

/// The next guest that dials. Errors: kDeadlineExceeded after a minute.
Result<UniqueFd> AwaitGuest(const UniqueFd& listener);

}  // namespace gantry::bench
