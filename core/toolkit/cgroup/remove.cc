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
#include <csignal>
#include <string_view>
#include <utility>

#include <gantry/deadline.h>
#include <gantry/format.h>
#include <gantry/toolkit/cgroup/remove.h>
#include <gantry/toolkit/cgroup/tree.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/files/tree_walk.h>
#include <gantry/toolkit/process/backoff.h>

namespace gantry::cgroup {
namespace {

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

/// A frozen process of v1 does not take its SIGKILL, and a container may have frozen
/// some below its own cgroup.
void Thaw(const std::string& directory) {
  if (Exists(directory + "/freezer.state")) {
    ThawBelow(directory);
  }
}

/// So that nothing is born while all of it is killed.
void Freeze(const std::string& directory) {
  if (Exists(directory + "/freezer.state")) {
    IgnoreError(WriteExisting(directory + "/freezer.state", "FROZEN"), "another round kills it");
  }
}

/// What is no cgroup has no processes: the empty mount point of a hierarchy that is not mounted.
bool HasNone(const Error& error) {
  return error.code == Code::kNotFound || error.sys_errno == ENODEV || error.sys_errno == ENOTDIR;
}

/// One removal. Busy: EBUSY as the result's errno.
Status RemoveNow(const std::string& directory) {
  Status removed = RemoveOnce(directory);
  // A cgroup can be removed with its files in it: this is none, but what crun
  // wrote where a hierarchy is not mounted and its empty mount point is there.
  return !removed && removed.error().sys_errno == ENOTEMPTY ? RemoveTree(directory) : removed;
}

/// Kills what is in the cgroup and below, and waits until it has ended. `freezer`: what
/// was faster than the round before is stopped meanwhile; empty: nothing.
Status EmptyTree(const std::string& directory, const std::string& freezer, Deadline deadline) {
  if (WriteExisting(directory + "/cgroup.kill", "1")) {
    return {};
  }
  if (!freezer.empty()) {
    Freeze(freezer);
  }
  std::vector<Signalled> killed;
  const auto kill = [&](int below) -> Status {
    Status sent = SignalAt(below, SIGKILL, killed);
    return !sent && HasNone(sent.error()) ? Status() : sent;
  };
  Status all = WalkTree(directory, {.enter = kill, .leave = {}});
  if (!freezer.empty()) {
    Thaw(freezer);
  }
  if (!all && all.error().code != Code::kNotFound) {
    return all;
  }
  for (const auto& [pid, pidfd] : killed) {
    pollfd one = {pidfd.get(), POLLIN, 0};
    if (poll(&one, 1, PollTimeout(deadline)) == 0) {
      return Fail(Code::kDeadlineExceeded, "empty cgroup '{}': process {} outlives SIGKILL",
                  directory, pid);
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
    Status removed = RemoveNow(directory);
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
    Status removed = RemoveNow(directory);
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
