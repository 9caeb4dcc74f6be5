// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <utility>

#include <gantry/deadline.h>
#include <gantry/format.h>
#include <gantry/number.h>
#include <gantry/toolkit/cgroup/remove.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/files/tree_walk.h>
#include <gantry/toolkit/process/backoff.h>
#include <gantry/toolkit/process/pidfd.h>

namespace gantry::cgroup {
namespace {

constexpr size_t kMaxProcsBytes = 4U << 20;

using Killed = std::pair<HostPid, UniqueFd>;

/// Descriptors held at once for those that were killed.
constexpr size_t kMaxWaitedFor = 256;

bool IsCgroup2(const std::string& path) {
  struct statfs info = {};
  return statfs(path.c_str(), &info) == 0 && info.f_type == CGROUP2_SUPER_MAGIC;
}

bool IsDirectory(const std::string& path) {
  struct stat info = {};
  return lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

Result<std::vector<std::string>> Children(const std::string& directory) {
  GANTRY_TRY(const std::vector<std::string> names, ListDirectory(directory));
  std::vector<std::string> found;
  for (const std::string& name : names) {
    std::string path = Format("{}/{}", directory, name);
    if (IsDirectory(path)) {
      found.push_back(std::move(path));
    }
  }
  return found;
}

/// The mount points of all hierarchies. `cpu` and `cpu,cpuacct` may be links to
/// each other; only the directory counts.
Result<std::vector<std::string>> Hierarchies(const std::string& root) {
  if (IsCgroup2(root)) {
    return std::vector<std::string>{root};
  }
  return Children(root);
}

/// Of the cgroup that is open as `directory`.
std::string FileIn(int directory, std::string_view name) {
  return Format("/proc/self/fd/{}/{}", directory, name);
}

Result<std::vector<HostPid>> ProcessesIn(int directory) {
  std::vector<HostPid> found;
  auto text = ReadFile(FileIn(directory, "cgroup.procs"), kMaxProcsBytes);
  if (!text) {
    const int why = text.error().sys_errno;
    if (why != ENOENT && why != ENODEV && why != ENOTDIR && why != EOPNOTSUPP) {
      return std::unexpected(std::move(text).error());
    }
    return found;
  }
  std::string_view rest = *text;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const auto number = ParseNumber(rest.substr(0, end));
    // 0 stands for a process of another pid namespace.
    if (number && *number > 1) {
      found.push_back({static_cast<int32_t>(*number)});
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return found;
}

/// A frozen process of v1 does not take its SIGKILL, and a container may have frozen
/// some below its own cgroup.
void Thaw(const std::string& directory) {
  if (!Exists(directory + "/freezer.state")) {
    return;
  }
  const auto thaw = [](int below) -> Status {
    IgnoreError(WriteExisting(FileIn(below, "freezer.state"), "THAWED"), "it may just have gone");
    return {};
  };
  IgnoreError(WalkTree(directory, {.enter = thaw, .leave = {}}), "it may just have gone");
}

/// So that nothing is born while all of it is killed.
void Freeze(const std::string& directory) {
  if (Exists(directory + "/freezer.state")) {
    IgnoreError(WriteExisting(directory + "/freezer.state", "FROZEN"), "another round kills it");
  }
}

/// Kills what is in one cgroup and adds it to `killed`.
Status KillIn(int directory, std::vector<Killed>& killed) {
  std::vector<Killed> found;
  GANTRY_TRY(const std::vector<HostPid> listed, ProcessesIn(directory));
  for (const HostPid pid : listed) {
    if (auto fd = OpenPidfd(pid)) {
      found.emplace_back(pid, std::move(*fd));
    } else if (fd.error().code != Code::kNotFound) {
      return std::unexpected(std::move(fd).error());
    }
  }
  // A pid may have been reused between the list and the open. One that is in
  // the list again is the process that was opened.
  GANTRY_TRY(const std::vector<HostPid> again, ProcessesIn(directory));
  std::erase_if(found,
                [&](const auto& entry) { return !std::ranges::contains(again, entry.first); });
  for (auto& [pid, fd] : found) {
    KillProcess(fd);
    // Some of many are enough to wait for.
    if (killed.size() < kMaxWaitedFor) {
      killed.emplace_back(pid, std::move(fd));
    }
  }
  return {};
}

/// One removal from the leaves up. Busy: EBUSY as the result's errno.
Status RemoveOnce(const std::string& directory) {
  if (rmdir(directory.c_str()) == 0 || errno == ENOENT) {
    return {};
  }
  const auto remove = [&](int parent, const std::string& name) -> Status {
    if (unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) {
      return {};
    }
    return FailErrno(errno, "remove '{}' of cgroup '{}'", name, directory);
  };
  Status removed = WalkTree(directory, {.enter = {}, .leave = remove});
  if (!removed && removed.error().sys_errno == ENOTEMPTY) {
    // A cgroup can be removed with its files in it: this is none, but what crun
    // wrote where a hierarchy is not mounted and its empty mount point is there.
    return RemoveTree(directory);
  }
  return !removed && removed.error().code == Code::kNotFound ? Status() : removed;
}

/// Kills what is in the cgroup and below, and waits until it has ended. `freezer`: what
/// was faster than the round before is stopped meanwhile; empty: nothing.
Status EmptyTree(const std::string& directory, const std::string& freezer, Deadline deadline) {
  if (WriteExisting(directory + "/cgroup.kill", "1")) {
    return {};
  }
  std::vector<Killed> killed;
  if (!freezer.empty()) {
    Freeze(freezer);
  }
  Status all =
      WalkTree(directory, {.enter = [&](int below) { return KillIn(below, killed); }, .leave = {}});
  if (!freezer.empty()) {
    Thaw(freezer);
  }
  if (!all && all.error().code != Code::kNotFound) {
    return all;
  }
  for (const auto& [pid, fd] : killed) {
    pollfd one = {fd.get(), POLLIN, 0};
    if (poll(&one, 1, PollTimeout(deadline)) == 0) {
      return Fail(Code::kDeadlineExceeded, "empty cgroup '{}': process {} outlives SIGKILL",
                  directory, pid.value);
    }
  }
  return {};
}

/// How long a busy cgroup is tried. A spared one gets a moment too: its last
/// process may be on its way out.
Deadline PatienceFor(Leftovers leftovers, Deadline deadline) {
  if (leftovers == Leftovers::kKill) {
    return deadline;
  }
  return std::min(deadline, std::chrono::steady_clock::now() + std::chrono::milliseconds(100));
}

std::unexpected<Error> StillBusy(const std::string& directory, Leftovers leftovers) {
  return Fail(leftovers == Leftovers::kKill ? Code::kDeadlineExceeded : Code::kFailedPrecondition,
              "remove cgroup '{}': processes are in it", directory);
}

Status RemoveBusy(const std::string& directory, const std::string& freezer, Leftovers leftovers,
                  Deadline deadline) {
  Backoff backoff({.no_event = "rmdir of a cgroup: the kernel lets go of it a moment after its "
                               "last process has become a zombie, and v1 does not say when",
                   .first = std::chrono::milliseconds(1),
                   .longest = std::chrono::milliseconds(20)});
  const Deadline patience = PatienceFor(leftovers, deadline);
  for (bool first = true;; first = false) {
    if (leftovers == Leftovers::kKill) {
      GANTRY_CHECK_OK(EmptyTree(directory, first ? "" : freezer, deadline));
    }
    Status removed = RemoveOnce(directory);
    if (removed || removed.error().sys_errno != EBUSY) {
      return removed;
    }
    if (!backoff.Sleep(patience)) {
      return StillBusy(directory, leftovers);
    }
  }
}

/// The one of v1's freezer tree; empty where there is none.
std::string FreezerOf(const std::vector<std::string>& directories) {
  const auto found = std::ranges::find_if(directories, [](const std::string& directory) {
    return Exists(directory + "/freezer.state");
  });
  return found == directories.end() ? std::string() : *found;
}

/// Below `root` by at least a hierarchy and a name, and without `..`: never a
/// hierarchy as a whole.
bool IsRemovable(const std::string& directory, const std::string& root) {
  if (!directory.starts_with(root + "/") || (directory + "/").contains("/../")) {
    return false;
  }
  std::string_view below = std::string_view(directory).substr(root.size());
  const auto depth = [](std::string_view path) {
    size_t names = 0;
    for (size_t i = 0; i < path.size(); ++i) {
      names += path[i] != '/' && (i == 0 || path[i - 1] == '/') ? 1 : 0;
    }
    return names;
  };
  return depth(below) >= (IsCgroup2(root) ? 1U : 2U);
}

}  // namespace

CgroupMode DetectCgroups(const std::string& root) {
  if (IsCgroup2(root)) {
    return CgroupMode::kV2;
  }
  if (Hierarchies(root).value_or(std::vector<std::string>()).empty()) {
    return CgroupMode::kNone;
  }
  return IsCgroup2(root + "/unified") ? CgroupMode::kHybrid : CgroupMode::kV1;
}

NodeCgroups NodeCgroups::At(const std::string& root) {
  constexpr size_t kMaxControllersBytes = 4096;
  NodeCgroups node{.mode = DetectCgroups(root), .unclaimed = {}};
  if (node.mode == CgroupMode::kHybrid) {
    const auto text = ReadFile(root + "/unified/cgroup.controllers", kMaxControllersBytes);
    node.unclaimed = text ? text->substr(0, text->find('\n')) : "";
  }
  return node;
}

Result<std::vector<std::string>> CgroupDirectories(const std::string& path,
                                                   const std::string& root) {
  std::vector<std::string> found;
  const size_t first = path.find_first_not_of('/');
  if (first == std::string::npos || (path + "/").contains("/../") || path.starts_with("../")) {
    return found;
  }
  GANTRY_TRY(const std::vector<std::string> hierarchies, Hierarchies(root));
  for (const std::string& hierarchy : hierarchies) {
    const std::string directory = hierarchy + "/" + path.substr(first);
    if (IsDirectory(directory)) {
      found.push_back(directory);
    }
  }
  return found;
}

void ThawCgroups(const std::vector<std::string>& directories) {
  std::ranges::for_each(directories, Thaw);
}

Status RemoveCgroups(const std::vector<std::string>& directories, Leftovers leftovers,
                     Deadline deadline, const std::string& root) {
  Status result;
  for (const std::string& directory : directories) {
    if (!IsRemovable(directory, root)) {
      continue;
    }
    Status removed = RemoveOnce(directory);
    if (!removed && removed.error().sys_errno == EBUSY) {
      if (leftovers == Leftovers::kKill) {
        ThawCgroups(directories);
      }
      removed = RemoveBusy(directory, FreezerOf(directories), leftovers, deadline);
    }
    if (!removed && result) {
      result = std::move(removed);
    }
  }
  return result;
}

}  // namespace gantry::cgroup
