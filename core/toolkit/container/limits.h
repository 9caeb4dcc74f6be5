// SPDX-License-Identifier: Apache-2.0
//
// What a process takes of the node: resource limits, OOM score, scheduler, IO priority.
// Source: prlimit(2), proc_pid_oom_score_adj(5), sched_setattr(2), ioprio_set(2).
#pragma once

#include <sys/types.h>

#include <gantry/error.h>
#include <gantry/toolkit/oci/spec.h>

namespace gantry::container {

/// Of the calling process, and so of the children that it makes. Lowering it needs rights over the
/// node, so it is done before a user namespace is entered.
Status SetOomScore(int proc, const oci::ProcessSpec& process);

/// Resources, a bit for each by its number: RLIMIT_NOFILE is 1 << RLIMIT_NOFILE.
using Resources = int;

/// Of the calling process, as far as it may: to lower a limit needs no right, while somebody else
/// needs CAP_SYS_RESOURCE for those of another user. Gives those that are left. The last of what it
/// does to itself: limits may leave it nothing to work with.
Resources LowerLimits(const oci::ProcessSpec& process);

/// Of process `pid`: scheduler, IO priority and the limits that it has left, by who has the rights
/// over the node that the process has no longer in its user namespace.
Status SetLimits(pid_t pid, const oci::ProcessSpec& process, Resources left);

}  // namespace gantry::container
