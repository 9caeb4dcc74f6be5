// SPDX-License-Identifier: Apache-2.0
//
// What a test reads of the host: files, processes, mounts, cgroups. Everything
// tolerates that what it looks at goes away meanwhile.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/harness/program.h"

namespace gantry::e2e {

std::string ReadText(const std::string& path);
void WriteText(const std::string& path, std::string_view text);

/// Names in a folder, sorted; none when there is no such folder.
std::vector<std::string> ListFolder(const std::string& path);
/// Paths below `root` whose last part contains `part`.
std::vector<std::string> FindNames(const std::string& root, std::string_view part);

struct HostProcess {
  pid_t pid = 0;
  pid_t parent = 0;
  std::string command;  ///< Arguments joined by blanks; empty for a zombie.
  std::string name;     ///< The file name of what it executes.
};

std::vector<HostProcess> Processes(const std::function<bool(const HostProcess&)>& wanted);
/// Processes whose environment holds `entry`, a whole KEY=VALUE.
std::vector<HostProcess> ProcessesWithEnv(const std::string& entry);
/// Processes in a cgroup (of any hierarchy) whose path has `part` in it.
std::vector<HostProcess> ProcessesInCgroup(const std::string& part);
std::string Describe(const std::vector<HostProcess>& processes);

/// Open descriptors of a process; -1 when it is gone.
int CountDescriptors(pid_t pid);
/// Waits for the end of a process that is not ours. True when it ended.
bool WaitGone(pid_t pid, Duration deadline = kDeadline);

/// Mount points at or below `path`, the latest first.
std::vector<std::string> MountsBelow(const std::string& path);
/// Folders of every hierarchy that hold the cgroup `relative` ("/a/b").
std::vector<std::string> CgroupFolders(const std::string& relative);

/// The file that limits the memory of the cgroup `relative`, which is made where it is not there.
std::string MemoryLimitFile(const std::string& relative);

/// Waits until `condition` holds, for what offers no event: it is looked at
/// again every few milliseconds. True when it held before the deadline.
bool Eventually(const std::function<bool()>& condition, Duration deadline = kDeadline);

/// Waits until the file has `text` at or after `offset`.
bool WaitForText(const std::string& path, std::string_view text, size_t offset = 0,
                 Duration deadline = kDeadline);

}  // namespace gantry::e2e
