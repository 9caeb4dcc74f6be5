// SPDX-License-Identifier: Apache-2.0
//
// Moving a process into cgroups, with all that it has started.
#pragma once

#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/host_process.h>

namespace gantry::cgroup {

/// `cgroups`: one directory of the unified hierarchy, or one for each v1 controller; none:
/// nothing is moved. What it starts from now on is born there; what it had started and lives is
/// moved too. Memory that was used before stays where it was accounted.
/// Errors: kNotFound: it has ended; kFailedPrecondition: the kernel tells no children; as it
/// refuses. Blocks: for some milliseconds, of the kernel's. Source: kernel,
/// admin-guide/cgroup-v2.rst; cgroups(7).
Status MoveIntoCgroups(HostPid process, const std::vector<std::string>& cgroups);

}  // namespace gantry::cgroup
