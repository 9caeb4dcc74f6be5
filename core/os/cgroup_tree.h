// SPDX-License-Identifier: Apache-2.0
//
// What can be done to a cgroup's directory alike on v1 and v2: walking it,
// signalling what is in it, removing it. What is below it may be the container's work:
// any depth will do.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::os {

using CgroupDeadline = std::chrono::steady_clock::time_point;

/// The names of the directories in `dir`, sorted; none where it is absent.
std::vector<std::string> SubDirs(const std::string& dir);

/// The processes in `dir` and in all cgroups below, ascending, each once.
/// Processes that this process's pid namespace cannot name are left out.
/// Errors: kNotFound when `dir` is absent; below it, absence is fine.
Result<std::vector<pid_t>> ProcsBelow(const std::string& dir);

/// Sends `signal` to all processes of `dir`. No process of another cgroup is hit
/// by a reused pid: what is signalled is a pidfd whose process was still in `dir`
/// after it had been opened. Gives some of the pidfds, to wait for.
Result<std::vector<UniqueFd>> SignalBelow(const std::string& dir, int signal);

/// SIGKILL until nothing is left. `set_frozen(true)` is called before a round
/// where processes were quicker to fork than we to kill, `set_frozen(false)`
/// after each: frozen processes cannot die. Errors: kDeadlineExceeded.
Status KillBelow(const std::string& dir, CgroupDeadline deadline,
                 const std::function<void(bool)>& set_frozen);

/// Lets what is frozen in `freezer`, a directory of v1's freezer tree, or in a cgroup below
/// run: a container may have frozen some of its own. Blocks: never.
void ThawBelow(const std::string& freezer);

/// Removes `dir` and all below it. Errors: kFailedPrecondition when it is still
/// busy at the deadline.
Status RemoveBelow(const std::string& dir, CgroupDeadline deadline);

}  // namespace gantry::os
