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

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::cgroup {

/// The names of the directories in `dir`, sorted; none where it is absent.
std::vector<std::string> SubDirs(const std::string& dir);

/// The processes in the very cgroup that is open as `dir`, which is borrowed. Those that this
/// process's pid namespace cannot name are left out, and so are all of a threaded cgroup of v2: the
/// domain above lists them.
Result<std::vector<pid_t>> ProcsAt(int dir);

/// The processes in `dir` and in all cgroups below, ascending, each once.
/// Processes that this process's pid namespace cannot name are left out.
/// Errors: kNotFound when `dir` is absent; below it, absence is fine.
Result<std::vector<pid_t>> ProcsBelow(const std::string& dir);

/// A process that was sent a signal.
struct Signalled {
  pid_t pid = 0;
  UniqueFd pidfd;
};

/// Some of many are enough to wait for.
inline constexpr size_t kMaxSignalled = 256;

/// Sends `signal` to the processes in the very cgroup that is open as `dir`, but never to PID 1 nor
/// to the calling one. No process of another cgroup is hit by a reused pid: what is signalled is a
/// pidfd whose process was listed there after it had been opened. Adds those that had not ended to
/// `signalled`, up to `kMaxSignalled`, to wait for.
Status SignalAt(int dir, int signal, std::vector<Signalled>& signalled);

/// The same for `dir` and all cgroups below.
Result<std::vector<Signalled>> SignalBelow(const std::string& dir, int signal);

/// SIGKILL until nothing is left. `set_frozen(true)` is called before a round
/// where processes were quicker to fork than we to kill, `set_frozen(false)`
/// after each: frozen processes cannot die. Errors: kDeadlineExceeded.
Status KillBelow(const std::string& dir, Deadline deadline,
                 const std::function<void(bool)>& set_frozen);

/// Lets what is frozen in `freezer`, a directory of v1's freezer tree, or in a cgroup below
/// run: a container may have frozen some of its own. Blocks: never.
void ThawBelow(const std::string& freezer);

/// One removal of `dir` and all below it, from the leaves up. Gone is what counts, whoever did it.
/// Errors: the kernel's, EBUSY as the errno where processes are in one.
Status RemoveOnce(const std::string& dir);

/// Removes `dir` and all below it. Errors: kFailedPrecondition when it is still
/// busy at the deadline.
Status RemoveBelow(const std::string& dir, Deadline deadline);

}  // namespace gantry::cgroup
