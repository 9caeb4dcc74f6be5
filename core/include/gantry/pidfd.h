// SPDX-License-Identifier: Apache-2.0
//
// Processes of the host by descriptor, for those that are no `HostProcess`.
// Blocks: never. Thread: any.
#pragma once

#include <cstdint>

#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/unique_fd.h>

namespace gantry {

/// Field 22 of /proc/PID/stat. Errors: kNotFound. Source: proc(5).
Result<uint64_t> StartTimeOf(HostPid pid);
/// Errors: kNotFound when there is no such process.
Result<UniqueFd> OpenPidfd(HostPid pid);
void SignalProcess(const UniqueFd& pidfd, int signal);
void KillProcess(const UniqueFd& pidfd);
/// Ends the process and, from Linux 6.9 on, its whole process group.
void KillGroup(const UniqueFd& pidfd);

}  // namespace gantry
