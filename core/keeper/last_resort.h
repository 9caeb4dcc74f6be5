// SPDX-License-Identifier: Apache-2.0
//
// Killing what belongs to an instance without the engine: used by the keeper when
// the engine is away or silent, and by the shim when the keeper is gone, too.
#pragma once

#include "core/link/messages.h"

namespace gantry::keeper {

/// One pass: SIGKILL for everything that the last resort names and that lives. Returns
/// whether something was still alive, so that another pass is needed to be sure.
/// Never kills: this process, pid 1, the root of a cgroup tree, a process whose start
/// time is unknown. Blocks: never.
bool KillOnce(const link::LastResort& last_resort);

/// Removes what the dead leave behind: the last resort's cgroups, memory mounts and state
/// directories.
/// Returns whether some cgroup is still busy, so that another call may remove it.
/// Refuses: the root of a cgroup tree, a state directory near the root of the file system.
/// Blocks: never for long.
bool CleanOnce(const link::LastResort& last_resort);

}  // namespace gantry::keeper
