// SPDX-License-Identifier: Apache-2.0
#include "core/keeper/last_resort.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/files/tree_walk.h>
#include <gantry/toolkit/process/pidfd.h>

namespace gantry::keeper {
namespace {

constexpr size_t kMaxProcsBytes = 1U << 20;

/// False: it had ended.
bool KillOpened(int pidfd) {
  if (HasEnded(pidfd)) {
    return false;
  }
  IgnoreError(SendSignal(pidfd, SIGKILL), "it ended just now");
  return true;
}

bool KillProcess(ProcessId process) {
  if (process.pid <= 1 || process.start_time == 0 || process.pid == getpid()) {
    return false;
  }
  const auto pidfd = OpenPidfd(process);
  return pidfd && KillOpened(pidfd->get());
}

/// Of the cgroup that is open as `dir`.
std::vector<pid_t> ProcsOf(int dir) {
  const auto text = ReadFileAt(dir, "cgroup.procs", kMaxProcsBytes);
  std::vector<pid_t> pids;
  if (!text) {
    return pids;
  }
  const char* at = text->data();
  const char* const end = at + text->size();
  while (at < end) {
    pid_t pid = 0;
    const auto parsed = std::from_chars(at, end, pid);
    if (parsed.ec == std::errc() && pid > 0) {
      pids.push_back(pid);
    }
    at = parsed.ptr + 1;
  }
  return pids;
}

/// Kills what is in the very cgroup that is open as `dir`. A process that is opened by its pid may
/// be another one than was listed, so what counts is a list that is made while it is open.
bool KillListed(int dir) {
  constexpr size_t kAtOnce = 64;
  const std::vector<pid_t> listed = ProcsOf(dir);
  bool alive = false;
  for (size_t done = 0; done < listed.size(); done += kAtOnce) {
    std::map<pid_t, UniqueFd> opened;
    for (size_t i = done; i < std::min(done + kAtOnce, listed.size()); ++i) {
      if (listed[i] > 1 && listed[i] != getpid()) {
        if (auto pidfd = OpenPidfd({listed[i], 0})) {
          opened[listed[i]] = std::move(*pidfd);
        }
      }
    }
    for (const pid_t still : ProcsOf(dir)) {
      if (const auto found = opened.find(still); found != opened.end()) {
        alive = KillOpened(found->second.get()) || alive;
      }
    }
  }
  return alive;
}

/// A tree's root, or no cgroup at all.
bool IsForbidden(const std::string& dir) {
  if (!dir.starts_with('/') || !Exists(dir + "/cgroup.procs")) {
    return true;
  }
  // v1: only a root has release_agent. v2: only a root has no cgroup.type.
  const bool unified = Exists(dir + "/cgroup.controllers");
  return unified ? !Exists(dir + "/cgroup.type") : Exists(dir + "/release_agent");
}

/// Whether this process is in it: then it must not be frozen.
bool IsOurs(const std::string& dir) {
  bool ours = false;
  const auto look = [&](int below) -> Status {
    ours = ours || std::ranges::contains(ProcsOf(below), getpid());
    return {};
  };
  return !WalkTree(dir, {.enter = look, .leave = {}}) || ours;
}

/// On v1 all of it stands still meanwhile: what is born during a pass is of the next one.
bool KillTree(const std::string& dir) {
  bool alive = false;
  const bool freezes = Exists(dir + "/freezer.state") && !IsOurs(dir);
  if (freezes) {
    IgnoreError(WriteExisting(dir + "/freezer.state", "FROZEN"), "the next pass kills the rest");
  }
  const auto kill = [&](int below) -> Status {
    alive = KillListed(below) || alive;
    return {};
  };
  IgnoreError(WalkTree(dir, {.enter = kill, .leave = {}}), "the next pass kills the rest");
  if (Exists(dir + "/freezer.state")) {
    // Frozen processes take no SIGKILL, and a container may have frozen some by itself.
    const auto thaw = [](int below) -> Status {
      IgnoreError(WriteExistingAt(below, "freezer.state", "THAWED"), "then it dies when thawed");
      return {};
    };
    IgnoreError(WalkTree(dir, {.enter = thaw, .leave = {}}), "the next pass thaws the rest");
  }
  return alive;
}

bool IsPopulated(const std::string& dir) {
  const auto events = ReadFile(dir + "/cgroup.events", 4096);
  return events && events->contains("populated 1");
}

bool KillCgroup(const std::string& dir) {
  if (IsForbidden(dir)) {
    return false;
  }
  if (Exists(dir + "/cgroup.kill")) {
    if (!IsPopulated(dir)) {
      return false;
    }
    if (WriteExisting(dir + "/cgroup.kill", "1")) {
      return true;
    }
  }
  return KillTree(dir);
}

/// Removes the cgroups below `dir` and then `dir`. False: something is busy.
bool RemoveCgroup(const std::string& dir) {
  bool busy = false;
  const auto remove = [&](int parent, const std::string& name) -> Status {
    busy = (unlinkat(parent, name.c_str(), AT_REMOVEDIR) != 0 && errno == EBUSY) || busy;
    return {};
  };
  const Status walked = WalkTree(dir, {.enter = {}, .leave = remove});
  return !busy && (walked || walked.error().code == Code::kNotFound);
}

bool IsStateDir(const std::string& dir) {
  return dir.starts_with('/') && !dir.contains("/../") && !dir.ends_with("/..") &&
         std::ranges::count(dir, '/') >= 3;
}

}  // namespace

bool CleanOnce(const link::Plan& plan) {
  bool busy = false;
  for (const std::string& dir : plan.cgroup_dirs) {
    busy = (!IsForbidden(dir) && !RemoveCgroup(dir)) || busy;
  }
  for (const std::string& mount : plan.memory_mounts) {
    if (IsStateDir(mount)) {
      umount2(mount.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
    }
  }
  for (const std::string& dir : plan.state_dirs) {
    if (IsStateDir(dir)) {
      IgnoreError(RemoveTree(dir), "nobody else would remove it either");
    }
  }
  return busy;
}

bool KillOnce(const link::Plan& plan) {
  bool alive = false;
  // Cgroups first: what is frozen there is thawed, and nothing is born after it.
  for (const std::string& dir : plan.cgroup_dirs) {
    alive = KillCgroup(dir) || alive;
  }
  if (plan.init) {
    alive = KillProcess({plan.init->pid, plan.init->start_time}) || alive;
  }
  for (const link::ProcessRef& process : plan.processes) {
    alive = KillProcess({process.pid, process.start_time}) || alive;
  }
  return alive;
}

}  // namespace gantry::keeper
