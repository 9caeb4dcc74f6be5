// SPDX-License-Identifier: Apache-2.0
//
// What a spawned child does between clone and exec.
//
// The child is made as fork makes it, with a copy of the caller's memory, and
// not as vfork does: nothing that it does can harm the caller, and the keeper,
// which spawns, is so small that the copy costs little. Another thread of the
// caller may have held any lock at that moment, so between clone and exec there
// are only system calls: all that needs memory is prepared before, as a list
// of steps, and a failed step is reported by its number through a socket that
// exec closes.
//
// With new namespaces, or a pid namespace to join, one of the steps divides the child: the first
// one reports the second and ends, and the second goes on with the steps that are left.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <cerrno>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "core/os/spawn.h"

namespace gantry::os {

/// What the child says: a step failed, or (`pid` is not 0) a second child was born,
/// whose pidfd comes along.
struct SpawnReport {
  int32_t step = 0;
  int32_t sys_errno = 0;
  pid_t pid = 0;
};

/// What the second child waits for: 0, or the errno with which its release failed.
using SpawnRelease = int32_t;

/// Of a system call that answers -1 where it fails: 0 or the errno.
inline int ErrnoOf(long result) { return result < 0 ? errno : 0; }

/// The child's steps and what they use. The request must outlive it.
class SpawnSteps {
 public:
  explicit SpawnSteps(const SpawnRequest& request) : request_(request) {}

  /// Errors: INVALID_ARGUMENT for a request that contradicts itself.
  Status Prepare();
  /// The child's part, from clone on. `status` is its end of the socket,
  /// `callers_end` the other one.
  [[noreturn]] void RunChild(int status, int callers_end);

  std::vector<std::string> TakeLabels() { return std::move(labels_); }

  /// Where a second child waits, where there is one.
  size_t release_step() const { return release_step_; }

  /// Which step sets the seccomp filter, where there is one.
  std::optional<size_t> filter_step() const { return filter_step_; }

  /// For a kernel that cannot make a process in a cgroup: the child moves.
  void EnterCgroupByWriting() { cgroup_by_writing_ = true; }

 private:
  /// One thing that the child does: 0 or the errno. System calls only.
  using Step = std::move_only_function<int()>;

  void Add(std::string label, Step step) {
    labels_.push_back(std::move(label));
    steps_.push_back(std::move(step));
  }

  Status PrepareDescriptors();
  void AddCgroups();
  void AddOomScore();
  void AddLimits(bool late);
  Status OpenParent();
  void NameDescriptors();
  void AddParent();
  void AddHiding();
  void AddProgram();
  void AddJoins();
  void AddBirth();
  void AddSession();
  void AddDescriptors();
  void AddMounts();
  void AddOwnRoot();
  void AddIdentity();
  void AddBounding();
  void AddPrivileges();
  void AddCapabilities();
  void AddFilter();
  void AddExec();

  int CloseOthers();
  int MakeSecond();
  int AwaitRelease() const;
  int SetDeathSignal(int signal) const;

  bool Joins(int type) const;

  const SpawnRequest& request_;
  std::vector<std::string> labels_;
  std::vector<Step> steps_;
  size_t release_step_ = 0;
  std::optional<size_t> filter_step_;
  sock_fprog filter_{};
  std::vector<SpawnRequest::Descriptor> descriptors_;
  /// What the steps use of what the caller has open, above 2; ordered in the child.
  std::vector<int> named_;
  /// The descriptors' numbers above all targets, while they are put in place.
  std::vector<int> moved_;
  /// The first number above all targets.
  int above_ = 3;
  int status_ = -1;
  UniqueFd null_;
  /// For the death signal. The parent's pid says nothing in another pid namespace.
  UniqueFd parent_;
  int parent_number_ = -1;
  int program_number_ = -1;
  std::vector<char*> argv_;
  std::vector<char*> env_;
  std::string oom_score_adj_;
  std::string self_ = "0";
  bool cgroup_by_writing_ = false;
};

}  // namespace gantry::os
