// SPDX-License-Identifier: Apache-2.0
#include "plugins/runc/cgroups.h"

#include <linux/magic.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include <gantry/deadline.h>
#include <gantry/files.h>
#include <gantry/format.h>
#include <gantry/number.h>
#include <gantry/pidfd.h>

namespace gantry::runc {
namespace {

constexpr size_t kMaxProcsBytes = 4U << 20;

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

Result<std::vector<HostPid>> ProcessesIn(const std::string& directory) {
  std::vector<HostPid> found;
  auto text = ReadFile(directory + "/cgroup.procs", kMaxProcsBytes);
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

/// A frozen process of v1 does not take its SIGKILL.
void Thaw(const std::string& directory) {
  if (Exists(directory + "/freezer.state")) {
    IgnoreError(WriteFile(directory + "/freezer.state", "THAWED", 0), "it may just have gone");
  }
}

/// Kills what is in one cgroup and waits until it has ended.
Status Empty(const std::string& directory, Deadline deadline) {
  std::vector<std::pair<HostPid, UniqueFd>> found;
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
  for (const auto& [pid, fd] : found) {
    KillProcess(fd);
  }
  for (const auto& [pid, fd] : found) {
    pollfd one = {fd.get(), POLLIN, 0};
    if (poll(&one, 1, PollTimeout(deadline)) == 0) {
      return Fail(Code::kDeadlineExceeded, "empty cgroup '{}': process {} outlives SIGKILL",
                  directory, pid.value);
    }
  }
  return {};
}

/// One removal from the leaves up. Busy: EBUSY as the result's errno.
Status RemoveOnce(const std::string& directory) {
  if (rmdir(directory.c_str()) == 0 || errno == ENOENT) {
    return {};
  }
  GANTRY_TRY(const std::vector<std::string> children, Children(directory));
  for (const std::string& child : children) {
    GANTRY_CHECK_OK(RemoveOnce(child));
  }
  if (rmdir(directory.c_str()) == 0 || errno == ENOENT) {
    return {};
  }
  if (errno == ENOTEMPTY) {
    // A cgroup can be removed with its files in it: this is none, but what crun
    // wrote where a hierarchy is not mounted and its empty mount point is there.
    return RemoveTree(directory);
  }
  return FailErrno(errno, "remove cgroup '{}'", directory);
}

Status EmptyTree(const std::string& directory, Deadline deadline) {
  GANTRY_TRY(const std::vector<std::string> children, Children(directory));
  for (const std::string& child : children) {
    GANTRY_CHECK_OK(EmptyTree(child, deadline));
  }
  return Empty(directory, deadline);
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

/// The kernel lets go of a cgroup a moment after the last process has become a
/// zombie, and v1 has no event for it: a pause that grows, up to 20 ms.
Status RemoveBusy(const std::string& directory, Leftovers leftovers, Deadline deadline) {
  constexpr int kLongestPauseMs = 20;
  const Deadline patience = PatienceFor(leftovers, deadline);
  for (int pause_ms = 1;; pause_ms = std::min(2 * pause_ms, kLongestPauseMs)) {
    if (leftovers == Leftovers::kKill) {
      GANTRY_CHECK_OK(EmptyTree(directory, deadline));
    }
    Status removed = RemoveOnce(directory);
    if (removed || removed.error().sys_errno != EBUSY) {
      return removed;
    }
    if (Left(patience).count() == 0) {
      return StillBusy(directory, leftovers);
    }
    poll(nullptr, 0, pause_ms);
  }
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
      removed = RemoveBusy(directory, leftovers, deadline);
    }
    if (!removed && result) {
      result = std::move(removed);
    }
  }
  return result;
}

}  // namespace gantry::runc
