// SPDX-License-Identifier: Apache-2.0
//
// Processes of the host, whoever has started them: which one it is, signals to it, whether it
// has ended. A process that the keeper has started is a `HostProcess`, which does the same.
// Blocks: never. Thread: any.
#pragma once

#include <cstdint>

#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/toolkit/process/process_id.h>
#include <gantry/unique_fd.h>

namespace gantry {

/// When the process started, in clock ticks since boot; one that has ended but was not reaped
/// still has it. Errors: kNotFound. Source: proc(5), /proc/PID/stat, field 22.
Result<uint64_t> StartTimeOf(HostPid pid);
/// The process that has the number `pid` now. Errors: kNotFound.
Result<ProcessId> Identify(HostPid pid);
/// Of the process that has the number `pid` now. Errors: kNotFound.
/// Source: proc(5), /proc/PID/stat, field 4.
Result<HostPid> ParentOf(HostPid pid);

/// A descriptor of the process that has the number `pid` now, readable when it has ended.
/// Errors: kNotFound where it has ended and was reaped.
Result<UniqueFd> OpenPidfd(HostPid pid);
/// The same of exactly this process. Errors: kNotFound also where the number was used again. A
/// start time of 0 is not checked.
Result<UniqueFd> OpenPidfd(const ProcessId& process);
/// The same for who waits for the end: of a process that was reaped already, something readable.
Result<UniqueFd> OpenEndOf(const ProcessId& process);

/// Owner: `pidfd` is borrowed. Errors: kNotFound where the process has ended and was reaped;
/// kInvalidArgument for a number that is no signal.
Status SendSignal(int pidfd, int signal);
/// Ends the process. One that has ended is left as it is.
void KillProcess(const UniqueFd& pidfd);
/// Ends the process and, from Linux 6.9 on, its whole process group.
void KillGroup(const UniqueFd& pidfd);

/// Whether the process has ended, reaped or not. Owner: `pidfd` is borrowed.
bool HasEnded(int pidfd);

}  // namespace gantry
