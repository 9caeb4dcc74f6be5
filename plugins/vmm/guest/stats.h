// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/cgroup/cgroup.h>

#include "plugins/vmm/protocol/reports.h"

namespace gantry::vmm::guest {

/// What the kernel counts for a container, and of the guest's interfaces. Errors: kNotFound: its
/// cgroup is gone. Blocks: never for long.
Result<protocol::StatsAnswer> ReadStats(const cgroup::Cgroup& cgroup);

/// The text of /proc/net/dev; the loopback is left out. Source: proc_pid_net(5).
std::vector<protocol::InterfaceStats> ParseInterfaces(std::string_view text);

}  // namespace gantry::vmm::guest
