// SPDX-License-Identifier: Apache-2.0
//
// Children of this process, and its own part in signals. Who a process is and signals to it are
// in `gantry/toolkit/process/pidfd.h`; how one is made, in `spawn.h`.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/process/process_id.h>
#include <gantry/unique_fd.h>

#include "core/os/spawn.h"

namespace gantry::os {

/// A child that this process has collected.
struct ReapedProcess {
  ProcessId process;
  /// As wait(2) gives it; see `WaitStatus`.
  int wait_status = 0;
  rusage usage{};
};

/// Collects one child that has ended, if there is one. Blocks: never.
Result<std::optional<ReapedProcess>> ReapNext();

/// Children of this thread, left by code that should start none.
struct LeftChildren {
  /// Had ended, and are collected now.
  std::vector<pid_t> reaped;
  bool running = false;
};

/// Collects the ended children of the calling thread; those of the process's other
/// threads are left alone. Blocks: never.
LeftChildren ReapLeftChildren();

/// What containerd calls the exit status, of a process that SIGKILL has ended.
inline constexpr uint32_t kKilledStatus = 128 + SIGKILL;

/// Orphans among the descendants become children of this process.
Status BecomeSubreaper();

/// Blocks `signals` for this thread and gives a descriptor that reads them
/// (struct signalfd_siginfo), nonblocking.
Result<UniqueFd> OpenSignalFd(std::initializer_list<int> signals);

/// Lets a write to a closed pipe or socket fail with EPIPE instead of killing.
void IgnoreSigpipe();

}  // namespace gantry::os
