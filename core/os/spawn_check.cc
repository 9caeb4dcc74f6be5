// SPDX-License-Identifier: Apache-2.0
#include "core/os/spawn_check.h"

#include <linux/bpf_common.h>
#include <sched.h>
#include <sys/mount.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <string_view>
#include <vector>

namespace gantry::os {

namespace {

constexpr size_t kMostRootPaths = 64;
/// What clone(2) can make. CLONE_NEWTIME is for clone3 and unshare.
constexpr int kKnownNamespaces = CLONE_NEWCGROUP | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWNS |
                                 CLONE_NEWPID | CLONE_NEWUSER | CLONE_NEWUTS;

Status CheckNamespaces(const SpawnRequest& request) {
  if ((request.new_namespaces & ~kKnownNamespaces) != 0) {
    return Fail(Code::kInvalidArgument, "spawn '{}': no flags of namespaces: {:#x}",
                ProgramOf(request), request.new_namespaces & ~kKnownNamespaces);
  }
  for (const auto& space : request.namespaces) {
    if ((space.type & request.new_namespaces) != 0) {
      return Fail(Code::kInvalidArgument, "spawn '{}': joins and makes a namespace of type {:#x}",
                  ProgramOf(request), space.type);
    }
  }
  const bool maps = !request.uid_map.empty();
  if (maps != !request.gid_map.empty() || (maps && (request.new_namespaces & CLONE_NEWUSER) == 0)) {
    return Fail(Code::kInvalidArgument,
                "spawn '{}': maps of uids and of gids go with each other and with a new user "
                "namespace",
                ProgramOf(request));
  }
  return {};
}

bool IsPlain(std::string_view path) {
  return path.starts_with('/') && path.size() > 1 && !path.ends_with('/') && !path.contains("//") &&
         !path.contains("/./") && !path.contains("/../") && !path.ends_with("/.") &&
         !path.ends_with("/..") && path != "/proc" && !path.starts_with("/proc/");
}

Status CheckRootPaths(const SpawnRequest& request) {
  if (!request.root_paths.empty() && !request.empty_root) {
    return Fail(Code::kInvalidArgument,
                "spawn '{}': paths in a root of its own, and none of its own", ProgramOf(request));
  }
  if (request.root_paths.size() > kMostRootPaths) {
    return Fail(Code::kInvalidArgument, "spawn '{}': {} paths in its root, {} are the most",
                ProgramOf(request), request.root_paths.size(), kMostRootPaths);
  }
  for (const RootPath& one : request.root_paths) {
    if (!IsPlain(one.path) || one.path.size() >= PATH_MAX) {
      return Fail(Code::kInvalidArgument,
                  "spawn '{}': '{}' in its root: an absolute path without '.' and '..', not below "
                  "/proc",
                  ProgramOf(request), one.path);
    }
  }
  return {};
}

Status CheckConfinement(const SpawnRequest& request) {
  if (request.propagation != 0 &&
      ((request.new_namespaces & CLONE_NEWNS) == 0 ||
       (request.propagation != MS_PRIVATE && request.propagation != MS_SLAVE))) {
    return Fail(
        Code::kInvalidArgument,
        "spawn '{}': the mounts of a new mount namespace become private or slaves, not {:#x}",
        ProgramOf(request), request.propagation);
  }
  if (request.empty_root && !request.cwd.empty() && request.cwd != "/") {
    return Fail(Code::kInvalidArgument, "spawn '{}': an empty root has no directory '{}'",
                ProgramOf(request), request.cwd);
  }
  GANTRY_CHECK_OK(CheckRootPaths(request));
  if (request.seccomp.size() > BPF_MAXINSNS) {
    return Fail(Code::kInvalidArgument,
                "spawn '{}': a filter of {} instructions, {} are the most that the kernel takes",
                ProgramOf(request), request.seccomp.size(), BPF_MAXINSNS);
  }
  if (!request.seccomp.empty() && !request.no_new_privs) {
    return Fail(Code::kInvalidArgument, "spawn '{}': a seccomp filter goes with no_new_privs",
                ProgramOf(request));
  }
  return {};
}

}  // namespace

const std::string& ProgramOf(const SpawnRequest& request) {
  return request.executable.empty() ? request.argv.front() : request.executable;
}

bool TakesSecond(const SpawnRequest& request) {
  return request.new_namespaces != 0 ||
         std::ranges::any_of(request.namespaces, [](const SpawnRequest::Namespace& space) {
           return (space.type & CLONE_NEWPID) != 0;
         });
}

Status CheckSpawn(const SpawnRequest& request) {
  if (request.argv.empty()) {
    return Fail(Code::kInvalidArgument, "spawn: no arguments");
  }
  if (!request.program_fd && !ProgramOf(request).contains('/')) {
    return Fail(Code::kInvalidArgument, "spawn '{}': not a path", ProgramOf(request));
  }
  if (request.controlling_tty_fd && !request.new_session) {
    return Fail(Code::kInvalidArgument, "spawn '{}': a terminal needs a session",
                ProgramOf(request));
  }
  GANTRY_CHECK_OK(CheckNamespaces(request));
  GANTRY_CHECK_OK(CheckConfinement(request));
  std::vector<int> targets;
  for (const auto& descriptor : request.descriptors) {
    if (descriptor.target < 0 || std::ranges::contains(targets, descriptor.target)) {
      return Fail(Code::kInvalidArgument, "spawn '{}': bad or repeated descriptor number {}",
                  ProgramOf(request), descriptor.target);
    }
    targets.push_back(descriptor.target);
  }
  return {};
}

}  // namespace gantry::os
