// SPDX-License-Identifier: Apache-2.0
#include "core/toolkit/cgroup/v1.h"

#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <string_view>

#include <gantry/toolkit/cgroup/tree.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/backoff.h>

namespace gantry::cgroup::v1 {
namespace {

constexpr size_t kMaxControlFile = 64 << 10;

Result<std::string> State(const std::string& freezer) {
  GANTRY_TRY(std::string state, ReadFile(freezer + "/freezer.state", kMaxControlFile));
  while (state.ends_with('\n')) {
    state.pop_back();
  }
  return state;
}

// Its state is asked for again and again. It is also written again, for processes that were forked
// in between.
Result<bool> SetAndWait(const std::string& freezer, std::string_view wanted, Deadline deadline) {
  Backoff backoff({.no_event = "freezer.state of v1 tells nobody when it is FROZEN",
                   .first = std::chrono::microseconds(100),
                   .longest = std::chrono::milliseconds(10)});
  do {
    GANTRY_CHECK_OK(WriteExisting(freezer + "/freezer.state", wanted));
    GANTRY_TRY(const std::string state, State(freezer));
    if (state == wanted) {
      return true;
    }
  } while (backoff.Sleep(deadline));
  return false;
}

Status CopyCpuset(const std::string& parent, const std::string& child) {
  for (const char* name : {"/cpuset.cpus", "/cpuset.mems"}) {
    GANTRY_TRY(const std::string own, ReadFile(child + name, kMaxControlFile));
    if (own.find_first_not_of(" \n") != own.npos) {
      continue;
    }
    GANTRY_TRY(const std::string value, ReadFile(parent + name, kMaxControlFile));
    GANTRY_CHECK_OK(WriteExisting(child + name, value));
  }
  return {};
}

Status MakeOne(const std::string& parent, const std::string& dir, bool cpuset) {
  if (mkdir(dir.c_str(), 0755) != 0 && errno != EEXIST) {
    return FailErrno(errno, "create cgroup '{}'", dir);
  }
  return cpuset ? CopyCpuset(parent, dir) : Status();
}

}  // namespace

Status Freeze(const std::string& freezer, Deadline deadline) {
  GANTRY_TRY(const bool frozen, SetAndWait(freezer, "FROZEN", deadline));
  if (frozen) {
    return {};
  }
  IgnoreError(WriteExisting(freezer + "/freezer.state", "THAWED"),
              "the time-out is what the caller must know");
  return Fail(Code::kDeadlineExceeded, "freeze cgroup '{}': not all processes stopped in time",
              freezer);
}

Status Thaw(const std::string& freezer, Deadline deadline) {
  GANTRY_TRY(const bool thawed, SetAndWait(freezer, "THAWED", deadline));
  if (!thawed) {
    return Fail(Code::kDeadlineExceeded, "thaw cgroup '{}': a cgroup above it is frozen", freezer);
  }
  return {};
}

Result<bool> Frozen(const std::string& freezer) {
  GANTRY_TRY(const std::string state, State(freezer));
  return state != "THAWED";
}

Status Create(const MountedCgroup& cgroup, bool cpuset) {
  size_t end = 0;
  std::string parent = cgroup.mount_dir;
  do {
    end = cgroup.path.find('/', end + 1);
    std::string dir = cgroup.mount_dir + cgroup.path.substr(0, end);
    GANTRY_CHECK_OK(MakeOne(parent, dir, cpuset));
    parent = std::move(dir);
  } while (end != std::string::npos);
  return {};
}

}  // namespace gantry::cgroup::v1
