// SPDX-License-Identifier: Apache-2.0
#include "core/keeper/last_resort.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include <gantry/toolkit/cgroup/tree.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/files/tree_walk.h>
#include <gantry/toolkit/process/pidfd.h>

namespace gantry::keeper {
namespace {

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

/// Kills what is in the very cgroup that is open as `dir`. Whether there was any.
bool KillListed(int dir) {
  std::vector<cgroup::Signalled> killed;
  IgnoreError(cgroup::SignalAt(dir, SIGKILL, killed), "the next pass kills the rest");
  return !killed.empty();
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
    const auto procs = cgroup::ProcsAt(below);
    ours = ours || (procs && std::ranges::contains(*procs, getpid()));
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
    cgroup::ThawBelow(dir);
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
  const Status removed = cgroup::RemoveOnce(dir);
  return removed || (removed.error().sys_errno != EBUSY && removed.error().code != Code::kAborted);
}

bool IsStateDir(const std::string& dir) {
  return dir.starts_with('/') && !dir.contains("/../") && !dir.ends_with("/..") &&
         std::ranges::count(dir, '/') >= 3;
}

}  // namespace

bool CleanOnce(const link::LastResort& last_resort) {
  bool busy = false;
  for (const std::string& dir : last_resort.cgroup_dirs) {
    busy = (!IsForbidden(dir) && !RemoveCgroup(dir)) || busy;
  }
  for (const std::string& mount : last_resort.memory_mounts) {
    if (IsStateDir(mount)) {
      umount2(mount.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
    }
  }
  for (const std::string& dir : last_resort.state_dirs) {
    if (IsStateDir(dir)) {
      IgnoreError(RemoveTree(dir), "nobody else would remove it either");
    }
  }
  return busy;
}

bool KillOnce(const link::LastResort& last_resort) {
  bool alive = false;
  // Cgroups first: what is frozen there is thawed, and nothing is born after it.
  for (const std::string& dir : last_resort.cgroup_dirs) {
    alive = KillCgroup(dir) || alive;
  }
  if (last_resort.init) {
    alive = KillProcess({last_resort.init->pid, last_resort.init->start_time}) || alive;
  }
  for (const link::ProcessRef& process : last_resort.processes) {
    alive = KillProcess({process.pid, process.start_time}) || alive;
  }
  return alive;
}

}  // namespace gantry::keeper
