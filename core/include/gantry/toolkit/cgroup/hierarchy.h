// SPDX-License-Identifier: Apache-2.0
//
// Where a node's cgroups are, and of which version: v1 has one tree per controller, v2 one
// tree; a "hybrid" node has both at once, v1's controllers and a v2 tree beside them.
// Source: cgroups(7); systemd, docs/CGROUP_DELEGATION.md.
#pragma once

#include <map>
#include <string>

#include <gantry/error.h>

namespace gantry::cgroup {

/// Where the cgroup trees are mounted.
inline constexpr const char* kCgroupRoot = "/sys/fs/cgroup";

enum class CgroupMode { kNone, kV1, kHybrid, kV2 };

/// Where the node's cgroup trees are mounted. Value type. Thread: any.
class CgroupHierarchy {
 public:
  struct Tree {
    std::string mount_dir;
    /// The cgroup that is seen at `mount_dir`, `/` but in containers.
    std::string root = "/";
  };

  /// The trees of this machine, from /proc/self/mountinfo.
  /// Errors: kNotFound when no cgroup file system is mounted.
  static Result<CgroupHierarchy> OfNode();
  /// The trees below `root_dir` by their files alone, as /sys/fs/cgroup is laid
  /// out: a tree of files can stand in for the kernel's.
  static Result<CgroupHierarchy> At(const std::string& root_dir);

  /// kNone: only of a hierarchy that was made without one of the above.
  CgroupMode mode() const;

  /// Controller ("memory", "name=systemd") and its v1 tree.
  const std::map<std::string, Tree>& v1() const { return v1_; }

  /// The v2 tree; `mount_dir` is empty where there is none.
  const Tree& unified() const { return unified_; }

  /// With `proc_dir` as /proc; for process look-ups in tests.
  void SetProcDirForTest(std::string proc_dir) { proc_dir_ = std::move(proc_dir); }

  const std::string& proc_dir() const { return proc_dir_; }

 private:
  void AddTree(const std::string& words, Tree tree);

  std::map<std::string, Tree> v1_;
  Tree unified_;
  std::string proc_dir_ = "/proc";
};

/// The node's cgroups, as far as it matters to an OCI runtime whether it can work here.
struct NodeCgroups {
  CgroupMode mode = CgroupMode::kNone;
  /// Of kHybrid: the controllers that the v2 tree has, since no v1 hierarchy has them:
  /// "hugetlb misc". Empty: none.
  std::string unclaimed;

  /// As it is now: they may be mounted at any time. Blocks: for the kernel's files.
  static NodeCgroups At(const std::string& root = kCgroupRoot);
};

}  // namespace gantry::cgroup
