// SPDX-License-Identifier: Apache-2.0
#include "core/testing/spawn.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <utility>

#include <gantry/format.h>

#include "core/testing/children.h"

namespace gantry::fakes {
namespace {

/// The interpreter of a script opens it by its path: a descriptor is closed by then.
bool IsScript(const UniqueFd& program) {
  // Opened anew: it may have come with O_PATH.
  const UniqueFd file(
      open(Format("/proc/self/fd/{}", program.get()).c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 2> head{};
  return pread(file.get(), head.data(), head.size(), 0) == 2 && head[0] == '#' && head[1] == '!';
}

unsigned PropagationOf(const SpawnRequest& from) {
  if ((from.new_namespaces & CLONE_NEWNS) == 0 || from.mounts == MountPropagation::kUnchanged) {
    return 0;
  }
  return from.mounts == MountPropagation::kSlave ? MS_SLAVE : MS_PRIVATE;
}

/// Born in the unified cgroup, which `unified` keeps open; it writes itself into others.
Status PlaceInCgroups(const SpawnRequest& from, os::SpawnRequest& to, UniqueFd& unified) {
  for (const std::string& directory : from.cgroups) {
    struct statfs fs{};
    if (statfs(directory.c_str(), &fs) != 0 || fs.f_type != CGROUP2_SUPER_MAGIC) {
      to.cgroup_procs.push_back(directory + "/cgroup.procs");
      continue;
    }
    unified.reset(open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!unified) {
      return FailErrno(errno, "open the cgroup '{}'", directory);
    }
    to.cgroup_fd = unified.get();
  }
  return {};
}

Status SetDescriptors(const SpawnRequest& from, os::SpawnRequest& to) {
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
  if (from.program && IsScript(from.program)) {
    to.executable = FileBehind(from.program);
  } else if (from.program) {
    to.program_fd = from.program.get();
  }
  return {};
}

os::SpawnRequest ToRequest(const SpawnRequest& from) {
  os::SpawnRequest to;
  to.argv = from.argv;
  to.env = from.env;
  to.cwd = from.cwd.empty() ? "/" : from.cwd;
  to.new_session = from.new_session;
  to.new_namespaces = from.new_namespaces;
  to.propagation = PropagationOf(from);
  to.uid_map = from.uid_map;
  to.gid_map = from.gid_map;
  to.uid = from.uid;
  to.gid = from.gid;
  to.empty_root = from.empty_root;
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

std::string FileBehind(const UniqueFd& program) {
  std::error_code failed;
  return program ? std::filesystem::read_symlink(Format("/proc/self/fd/{}", program.get()), failed)
                       .string()
                 : std::string();
}

Result<std::shared_ptr<FakeHostProcess>> Spawn(const SpawnRequest& request) {
  os::SpawnRequest ready = ToRequest(request);
  UniqueFd unified;
  GANTRY_CHECK_OK(SetDescriptors(request, ready));
  GANTRY_CHECK_OK(PlaceInCgroups(request, ready, unified));
  GANTRY_TRY(os::SpawnResult spawned, Children::Of().Spawn(ready));
  return std::make_shared<FakeHostProcess>(spawned.process, std::move(spawned.pidfd));
}

}  // namespace gantry::fakes
