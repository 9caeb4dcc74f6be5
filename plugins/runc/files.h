// SPDX-License-Identifier: Apache-2.0
//
// The few system calls on files and processes that this plugin makes itself.
// (A plugin sees nothing of the core but its interfaces.) Every descriptor made
// here is CLOEXEC.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/unique_fd.h>

namespace gantry::runc {

using Deadline = std::chrono::steady_clock::time_point;

/// What is left until `deadline`; never negative.
std::chrono::milliseconds Left(Deadline deadline);
/// The same as `poll` takes it, rounded up.
int PollTimeout(Deadline deadline);

/// The whole file. Errors: kNotFound; kResourceExhausted above `max_bytes`.
Result<std::string> ReadFile(const std::string& path, size_t max_bytes);
/// The last `max_bytes` of the file, all of a shorter one.
Result<std::string> ReadTail(const std::string& path, size_t max_bytes);
/// Replaces the file. A link in its last component is not followed.
Status WriteFile(const std::string& path, std::string_view data, mode_t mode);
/// The same at once: whoever reads it sees the old text or the new one. Not synced.
Status ReplaceFile(const std::string& path, std::string_view data, mode_t mode);
/// What a `ReplaceFile` that was killed half-way leaves.
std::string UnfinishedOf(const std::string& path);
/// Again: success, as for a file that never was.
Status RemoveFile(const std::string& path);
/// Removes a directory and what is in it; links are not followed. Again: success.
Status RemoveTree(const std::string& path);
bool Exists(const std::string& path);
bool IsExecutable(const std::string& path);
/// Names in a directory, without `.` and `..`; empty where there is none.
Result<std::vector<std::string>> ListDirectory(const std::string& path);

/// A number in decimal digits and nothing else. Errors: kInvalidArgument.
Result<int64_t> ParseNumber(std::string_view text);
/// Field 22 of /proc/PID/stat. Errors: kNotFound. Source: proc(5).
Result<uint64_t> StartTimeOf(HostPid pid);
/// Errors: kNotFound when there is no such process.
Result<UniqueFd> OpenPidfd(HostPid pid);
void SignalProcess(const UniqueFd& pidfd, int signal);
void KillProcess(const UniqueFd& pidfd);
/// Ends the process and, from Linux 6.9 on, its whole process group.
void KillGroup(const UniqueFd& pidfd);

}  // namespace gantry::runc
