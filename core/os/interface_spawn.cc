// SPDX-License-Identifier: Apache-2.0
#include "core/os/interface_spawn.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include <gantry/format.h>

namespace gantry::os {
namespace {

unsigned PropagationOf(const gantry::SpawnRequest& from) {
  if ((from.new_namespaces & CLONE_NEWNS) == 0 || from.mounts == MountPropagation::kUnchanged) {
    return 0;
  }
  return from.mounts == MountPropagation::kSlave ? MS_SLAVE : MS_PRIVATE;
}

/// Born in the unified cgroup; it writes itself into others.
Status PlaceInCgroups(const gantry::SpawnRequest& from, InterfaceSpawn& to) {
  for (const std::string& directory : from.cgroups) {
    struct statfs fs{};
    if (statfs(directory.c_str(), &fs) != 0 || fs.f_type != CGROUP2_SUPER_MAGIC) {
      to.request.cgroup_tasks.push_back(directory + "/tasks");
      continue;
    }
    to.unified_cgroup.reset(open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!to.unified_cgroup) {
      return FailErrno(errno, "open the cgroup '{}'", directory);
    }
    to.request.cgroup_fd = to.unified_cgroup.get();
  }
  return {};
}

Status SetDescriptors(const gantry::SpawnRequest& from, SpawnRequest& to) {
  for (const auto& [fd, number] : from.fds) {
    to.descriptors.push_back({fd.get(), number});
    if (from.controlling_terminal == number) {
      to.controlling_tty_fd = fd.get();
    }
  }
  if (from.controlling_terminal && !to.controlling_tty_fd) {
    return Fail(Code::kInvalidArgument,
                "start '{}': its controlling terminal, {}, is none of its descriptors",
                from.argv.empty() ? "" : from.argv.front(), *from.controlling_terminal);
  }
  for (const auto& [fd, type] : from.namespaces) {
    to.namespaces.push_back({fd.get(), type});
  }
  if (from.program) {
    to.program_fd = from.program.get();
  }
  return {};
}

SpawnRequest ToRequest(const gantry::SpawnRequest& from) {
  SpawnRequest to;
  to.argv = from.argv;
  to.env = from.env;
  to.cwd = from.cwd.empty() ? "/" : from.cwd;
  to.new_session = from.new_session;
  to.ignore_sigpipe = from.ignore_sigpipe;
  to.new_namespaces = from.new_namespaces;
  to.propagation = PropagationOf(from);
  to.uid_map = from.uid_map;
  to.gid_map = from.gid_map;
  to.uid = from.uid;
  to.gid = from.gid;
  to.empty_root = from.empty_root;
  to.root_paths = from.root_paths;
  to.no_new_privs = from.no_new_privs;
  to.capabilities = from.capabilities;
  to.seccomp = from.seccomp;
  to.oom_score_adj = from.oom_score_adj;
  for (const auto& [resource, limit] : from.rlimits) {
    to.limits.push_back({resource, limit});
  }
  return to;
}

}  // namespace

Result<InterfaceSpawn> OfInterface(const gantry::SpawnRequest& from) {
  InterfaceSpawn to{.request = ToRequest(from), .unified_cgroup = {}};
  GANTRY_CHECK_OK(SetDescriptors(from, to.request));
  GANTRY_CHECK_OK(PlaceInCgroups(from, to));
  return to;
}

}  // namespace gantry::os
