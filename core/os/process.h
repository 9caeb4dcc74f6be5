// SPDX-License-Identifier: Apache-2.0
//
// Processes of the host: who they are, signals to them, how they ended. How
// they are made is in `spawn.h`.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "core/os/process_id.h"
#include "core/os/spawn.h"

namespace gantry::os {

/// When `pid` started, in clock ticks since boot; a process that has ended but
/// was not reaped still has it. Errors: NOT_FOUND.
/// Source: proc(5), /proc/PID/stat field 22.
Result<uint64_t> StartTime(pid_t pid);

/// The process that has the number `pid` now. Errors: NOT_FOUND.
Result<ProcessId> Identify(pid_t pid);

/// A descriptor of exactly this process, readable when it has ended.
/// Errors: NOT_FOUND where it is gone, also where its number was reused. A
/// start time of 0 is not checked.
Result<UniqueFd> OpenPidfd(ProcessId process);

/// Errors: NOT_FOUND where the process has ended and was reaped;
/// INVALID_ARGUMENT for a number that is no signal.
Status SendSignal(int pidfd, int signal);

/// Whether the process has ended (reaped or not). Blocks: never.
bool HasEnded(int pidfd);

/// A child that this process has collected.
struct ReapedProcess {
  ProcessId process;
  /// As wait(2) gives it; see `ExitCode`.
  int wait_status = 0;
  rusage usage{};
};

/// Collects one child that has ended, if there is one. Blocks: never.
Result<std::optional<ReapedProcess>> ReapNext();

/// Children of this thread, left by code that should start none.
struct Strays {
  /// Had ended, and are collected now.
  std::vector<pid_t> reaped;
  bool running = false;
};

/// Collects the ended children of the calling thread; those of the process's other
/// threads are left alone. Blocks: never.
Strays ReapStrays();

/// What containerd calls the exit status: the exit code, or 128 + the signal.
uint32_t ExitCode(int wait_status);
/// Of one that SIGKILL has ended.
inline constexpr uint32_t kKilledStatus = 128 + SIGKILL;

/// Orphans among the descendants become children of this process.
Status BecomeSubreaper();

/// Blocks `signals` for this thread and gives a descriptor that reads them
/// (struct signalfd_siginfo), nonblocking.
Result<UniqueFd> OpenSignalFd(std::initializer_list<int> signals);

/// Lets a write to a closed pipe or socket fail with EPIPE instead of killing.
void IgnoreSigpipe();

}  // namespace gantry::os
