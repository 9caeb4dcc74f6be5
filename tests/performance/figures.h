// SPDX-License-Identifier: Apache-2.0
//
// What the kernel says of a side's processes: memory and processor time.
#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

#include "tests/performance/lab.h"

namespace gantry::bench {

/// The processes that a side keeps on the node, containers not among them.
std::vector<pid_t> Processes(const Lab& lab, const Side& side);

/// The lab's containerd; -1 where it does not run.
pid_t ContainerdOf(const Lab& lab);

enum class Pages {
  kAll,
  /// What a process has written: its heap, stacks, files in memory. Not its programs' text,
  /// which the kernel maps and takes back by the 64 KiB.
  kWritten,
};

/// Sum of their proportional set sizes. Units: KiB.
/// Source: proc(5), smaps_rollup.
double PssKib(const std::vector<pid_t>& pids, Pages pages = Pages::kAll);

/// `PssKib` once it has not changed for five seconds, or after forty: memory
/// that is on its way back to the kernel has arrived then.
double SettledPssKib(const Lab& lab, const Side& side, Pages pages = Pages::kAll);
double SettledPssKib(const std::function<std::vector<pid_t>()>& pids, Pages pages = Pages::kAll);

/// What all their threads have run so far. Units: ms.
/// Source: kernel, Documentation/scheduler/sched-stats.rst.
double CpuMilliseconds(const std::vector<pid_t>& pids);

/// What their children, and theirs, have run that were waited for. Units: ms, in steps of 10.
/// Source: proc_pid_stat(5), cutime and cstime.
double EndedChildrenMilliseconds(const std::vector<pid_t>& pids);

}  // namespace gantry::bench
