// SPDX-License-Identifier: Apache-2.0
//
// What a process of a sandbox may use of the node, and how one is ended.
#pragma once

#include <sys/resource.h>

#include <chrono>

#include <gantry/error.h>
#include <gantry/host_process.h>

namespace gantry {

/// A limit of `wanted`, soft and hard, for a process that this one has started (RLIMIT_*): as much
/// as that, or as may be, since hard limits are raised with CAP_SYS_RESOURCE only.
/// Source: getrlimit(2), capabilities(7). Blocks: for a file of procfs. Thread: any.
rlimit RaisedLimit(int resource, rlim_t wanted);

/// Whom the kernel kills first when the node's memory runs out: from -1000, never, to 1000.
/// Errors: kNotFound: it has ended; kPermissionDenied: lower than it was, without
/// CAP_SYS_RESOURCE; the errno's. Source: proc_pid_oom_score_adj(5). Thread: any.
Status WriteOomScore(HostPid pid, int score);

/// Kills it and waits. Null, or ended: success. Errors: kDeadlineExceeded: the kernel has not
/// ended it yet. Blocks: up to `limit`. Thread: workers.
Status EndProcess(HostProcess* process, std::chrono::milliseconds limit);

}  // namespace gantry
