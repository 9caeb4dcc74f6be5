// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <ranges>

#include <gantry/format.h>
#include <gantry/toolkit/cgroup/hierarchy.h>
#include <gantry/toolkit/cgroup/tree.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/mount/mount_info.h>

namespace gantry::cgroup {
namespace {

// The v1 controllers that runtimes put containers in. Others (misc, trees of
// other programs) leave a container in its starter's cgroup.
// Source: runc 1.1, libcontainer/cgroups/fs.
constexpr auto kControllers = std::to_array<std::string_view>(
    {"blkio", "cpu", "cpuacct", "cpuset", "devices", "freezer", "hugetlb", "memory", "net_cls",
     "net_prio", "perf_event", "pids", "rdma", "name=systemd"});

constexpr size_t kMaxControllersBytes = 4096;

bool IsUnifiedDir(const std::string& dir) { return Exists(dir + "/cgroup.controllers"); }

}  // namespace

// `words` has controllers among others, separated by commas. Of two trees for
// one controller the first counts.
void CgroupHierarchy::AddTree(const std::string& words, Tree tree) {
  for (const auto part : std::views::split(words, ',')) {
    const std::string_view word(part);
    if (std::ranges::find(kControllers, word) != kControllers.end()) {
      v1_.emplace(word, tree);
    }
  }
}

Result<CgroupHierarchy> CgroupHierarchy::OfNode() {
  GANTRY_TRY(const auto mounts, mount::ListMounts("/"));
  CgroupHierarchy out;
  bool pure = false;
  for (const mount::MountPoint& mount : mounts) {
    Tree tree{.mount_dir = mount.path, .root = mount.root};
    if (mount.type == "cgroup") {
      out.AddTree(mount.super_options, std::move(tree));
    } else if (mount.type == "cgroup2" &&
               (out.unified_.mount_dir.empty() || mount.path == kCgroupRoot)) {
      pure = pure || mount.path == kCgroupRoot;
      out.unified_ = std::move(tree);
    }
  }
  if (pure) {
    // What v1 trees there are beside it belong to somebody else.
    out.v1_.clear();
  }
  if (out.v1_.empty() && out.unified_.mount_dir.empty()) {
    return Fail(Code::kNotFound, "find the cgroup trees: none is mounted");
  }
  return out;
}

Result<CgroupHierarchy> CgroupHierarchy::At(const std::string& root_dir) {
  CgroupHierarchy out;
  if (IsUnifiedDir(root_dir)) {
    out.unified_.mount_dir = root_dir;
    return out;
  }
  for (const std::string& name : SubDirs(root_dir)) {
    const std::string dir = Format("{}/{}", root_dir, name);
    if (IsUnifiedDir(dir)) {
      out.unified_.mount_dir = dir;
    } else {
      out.AddTree(name == "systemd" ? "name=systemd" : name, Tree{.mount_dir = dir});
    }
  }
  if (out.v1_.empty() && out.unified_.mount_dir.empty()) {
    return Fail(Code::kNotFound, "find the cgroup trees in '{}': there is none", root_dir);
  }
  return out;
}

CgroupMode CgroupHierarchy::mode() const {
  const bool unified = !unified_.mount_dir.empty();
  if (v1_.empty()) {
    return unified ? CgroupMode::kV2 : CgroupMode::kNone;
  }
  return unified ? CgroupMode::kHybrid : CgroupMode::kV1;
}

NodeCgroups NodeCgroups::At(const std::string& root) {
  NodeCgroups node;
  const Result<CgroupHierarchy> hierarchy = CgroupHierarchy::At(root);
  if (!hierarchy) {
    return node;
  }
  node.mode = hierarchy->mode();
  if (node.mode == CgroupMode::kHybrid) {
    const auto text =
        ReadFile(hierarchy->unified().mount_dir + "/cgroup.controllers", kMaxControllersBytes);
    node.unclaimed = text ? text->substr(0, text->find('\n')) : "";
  }
  return node;
}

}  // namespace gantry::cgroup
