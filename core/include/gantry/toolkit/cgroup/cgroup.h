// SPDX-License-Identifier: Apache-2.0
//
// The cgroups of a container, on whichever hierarchies the node has (hierarchy.h): finding
// and making them, limits, freezing, killing, removal. What the kernel counts in them is in
// statistics.h.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/cgroup/hierarchy.h>
#include <gantry/toolkit/cgroup/membership.h>
#include <gantry/toolkit/cgroup/resources.h>
#include <gantry/toolkit/process/process_id.h>
#include <gantry/unique_fd.h>

namespace gantry::cgroup {

/// The cgroups that belong together: one per v1 controller, or the one of a pure
/// v2 node. Of a hybrid node's v2 tree nothing is taken: runtimes make no cgroup
/// there, so a container's processes are still in their starter's.
///
/// Value type: it names directories and owns nothing. Roots of trees are never
/// frozen, killed, changed or removed: such calls fail with kFailedPrecondition
/// when there is nothing but roots; so do `Freeze`, `Signal` and `Kill` when the
/// calling process is inside. Whoever takes a cgroup `OfProcess` should know that
/// a runtime has made it: a process without a cgroup of its own is in that of
/// its starter, with all of its siblings.
/// Thread: any; all that waits says `Blocks:`.
class Cgroup {
 public:
  using Duration = std::chrono::milliseconds;
  using Trees = std::map<std::string, MountedCgroup>;

  Cgroup() = default;
  /// The cgroups that the process is in now.
  /// Errors: kNotFound when it is gone, also where its number was reused; a start
  /// time of 0 is not checked.
  static Result<Cgroup> OfProcess(const CgroupHierarchy& hierarchy, ProcessId process);
  /// The cgroups called `path` (absolute, no `..`) in every tree; creates nothing.
  static Result<Cgroup> Named(const CgroupHierarchy& hierarchy, const std::string& path);
  /// As `Named`, and creates the directories. On v2 the controllers that the
  /// node has are enabled down to it. Again: fine, existing ones are kept.
  static Result<Cgroup> Create(const CgroupHierarchy& hierarchy, const std::string& path);

  /// Names no cgroup at all.
  bool empty() const { return v1().empty() && unified_.mount_dir.empty(); }

  /// The controllers are on v2.
  bool is_unified() const { return v1().empty(); }

  /// By controller. As long as this object, or a copy of it, is.
  const Trees& v1() const;

  const MountedCgroup& unified() const { return unified_; }

  /// The directory that has the files of `controller`: of its v1 tree, or the
  /// unified one on v2. Empty where there is none.
  std::string DirOf(std::string_view controller) const;

  /// All directories that are not roots: one, or one for each v1 controller.
  std::vector<std::string> Dirs() const;

  /// At least one of the directories that are not roots is there.
  bool Exists() const;
  /// The processes in it and in all cgroups below, ascending, each once.
  Result<std::vector<pid_t>> Procs() const;
  /// Moves a process in, on every tree.
  Status AddProcess(pid_t pid) const;
  /// For CLONE_INTO_CGROUP and openat(). Errors: kUnimplemented on v1.
  Result<UniqueFd> OpenUnified() const;

  /// Stops every process in it; returns when the kernel says all are stopped.
  /// Errors: kDeadlineExceeded (it is thawed again), kUnimplemented without a
  /// freezer, kFailedPrecondition when this very process is inside.
  /// Blocks: up to `timeout`.
  Status Freeze(Duration timeout) const;
  /// The reverse of `Freeze`. Again: fine. Blocks: up to `timeout`.
  Status Thaw(Duration timeout) const;
  /// Whether it is frozen (or being frozen) by its own setting.
  Result<bool> Frozen() const;
  /// Sends a signal to every process in it and below, once. Nothing there: fine.
  Status Signal(int signal) const;
  /// SIGKILL to every process in it and below, also newly forked ones; returns
  /// when it is empty. Frozen processes are thawed to die. Absent: fine.
  /// Blocks: up to `timeout`, then kDeadlineExceeded.
  Status Kill(Duration timeout) const;
  /// Where SIGKILL was sent to a process in it: lets what is frozen there or in a cgroup below
  /// run, since frozen processes of v1 do not take the signal. v2: nothing to do.
  /// Blocks: never.
  void ThawToDie() const;
  /// Removes the directories with all below, deepest first; absent ones are
  /// fine. A cgroup that is busy because its processes are just dying is retried.
  /// Blocks: up to `timeout`, then kFailedPrecondition.
  Status Remove(Duration timeout) const;
  /// Removes what has neither processes nor cgroups below; the rest stays.
  /// Errors: what else keeps it from going.
  Status RemoveIfEmpty() const;

  /// Sets the limits. What the hierarchy lacks a file for is an error only if
  /// the limit is really one (not "max", 0 or -1).
  /// Errors: kInvalidArgument for a value the kernel refuses.
  Status Update(const CgroupResources& resources) const;

  /// For records; `Decode` takes nothing else.
  std::string Encode() const;
  static Result<Cgroup> Decode(std::string_view text);

  bool operator==(const Cgroup& other) const {
    return v1() == other.v1() && unified_ == other.unified_;
  }

 private:
  Cgroup(Trees v1, MountedCgroup unified);

  Result<std::string> Primary() const;

  /// Its copies have it together: a dozen entries that a container would pay several times.
  /// Nothing: there is none.
  std::shared_ptr<const Trees> v1_;
  MountedCgroup unified_;
};

}  // namespace gantry::cgroup
