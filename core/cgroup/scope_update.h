// SPDX-License-Identifier: Apache-2.0
//
// Limits of a container in a scope of systemd, of an OCI runtime's making or ours. systemd sets
// the scope's limits again by its own account whenever it reads its units anew or another
// property of the unit changes, so it has to be told; and what competes with other
// containers is the scope, not the cgroup that crun makes in it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/cgroup/cgroup.h>

#include "core/os/systemd_bus.h"

namespace gantry::cgroup {

/// The scope that the cgroup `path` is, or lies in; empty: in none.
std::string_view ScopeOf(std::string_view path);

/// What of `resources` are properties of a unit, with the values that are in the files of
/// `dir`, a cgroup of v2: what the kernel has rounded, systemd is told rounded.
/// Errors: reading them. Source: systemd.resource-control(5), org.freedesktop.systemd1(5).
Result<std::vector<os::UnitProperty>> ScopeProperties(const std::string& dir,
                                                      const CgroupResources& resources);

/// `Cgroup::Update` of the cgroup, and where it lies in a scope, of the scope and of what
/// systemd has of it.
/// Errors: those of `Update`; kUnavailable: systemd cannot be asked, nothing is changed, or it
/// cannot be told, and the limits hold until it sets its own. Again: the same. Blocks: up to some
/// seconds. Thread: workers.
Status UpdateWithScope(const CgroupHierarchy& node, const Cgroup& cgroup,
                       const CgroupResources& resources);

}  // namespace gantry::cgroup
