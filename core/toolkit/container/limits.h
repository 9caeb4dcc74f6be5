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

/// Of process `pid`, by who has the rights over the node that the process has no longer in its user
/// namespace. The last of what is done to it from outside: limits may leave it nothing to work
/// with.
Status SetLimits(pid_t pid, const oci::ProcessSpec& process);

}  // namespace gantry::container
