// SPDX-License-Identifier: Apache-2.0
//
// A SpawnRequest as the link carries it: the descriptors in one list, and numbers that say what
// each is for. A number of -1 marks those that the child uses and does not get.
#include "core/keeper_client/spawn_message.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/vfs.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include <gantry/format.h>

namespace gantry::keeper_client {
namespace {

bool IsUnified(const std::string& dir) {
  struct statfs fs{};
  return statfs(dir.c_str(), &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC;
}

/// The unified cgroup is where the child is born; it writes itself into others.
void PlaceInCgroups(const std::vector<std::string>& dirs, link::Spawn& spawn,
                    std::vector<UniqueFd>& fds) {
  for (const std::string& dir : dirs) {
    if (!IsUnified(dir)) {
      spawn.cgroup_tasks.push_back(dir + "/tasks");
      continue;
    }
    spawn.cgroup_fd = static_cast<uint32_t>(fds.size());
    fds.emplace_back(open(dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    spawn.fd_targets.push_back(-1);
  }
}

std::vector<link::IdRange> ToRanges(const std::vector<IdMapping>& map) {
  std::vector<link::IdRange> ranges;
  ranges.reserve(map.size());
  for (const IdMapping& mapping : map) {
    ranges.push_back({mapping.container_id, mapping.host_id, mapping.length});
  }
  return ranges;
}

unsigned PropagationOf(const SpawnRequest& request) {
  if ((request.new_namespaces & CLONE_NEWNS) == 0) {
    return 0;
  }
  switch (request.mounts) {
    case MountPropagation::kPrivate:
      return MS_PRIVATE;
    case MountPropagation::kSlave:
      return MS_SLAVE;
    case MountPropagation::kUnchanged:
      return 0;
  }
  return MS_PRIVATE;
}

void SetConfinement(SpawnRequest& request, link::Spawn& spawn) {
  spawn.no_new_privs = request.no_new_privs;
  spawn.capabilities = request.capabilities;
  spawn.empty_root = request.empty_root;
  for (RootPath& one : request.root_paths) {
    spawn.root_paths.push_back({std::move(one.path), one.writable});
  }
  spawn.propagation = PropagationOf(request);
  const auto filter = std::as_bytes(std::span(request.seccomp));
  spawn.seccomp.assign(reinterpret_cast<const char*>(filter.data()), filter.size());
}

/// Where the terminal is among the descriptors.
Status SetTerminal(const SpawnRequest& request, link::Spawn& spawn) {
  if (!request.controlling_terminal) {
    return {};
  }
  const auto found = std::ranges::find(spawn.fd_targets, *request.controlling_terminal);
  if (found == spawn.fd_targets.end() || *found < 0) {
    return Fail(Code::kInvalidArgument,
                "start '{}': its controlling terminal, {}, is none of its descriptors", spawn.path,
                *request.controlling_terminal);
  }
  spawn.controlling_terminal = static_cast<uint32_t>(found - spawn.fd_targets.begin());
  return {};
}

}  // namespace

Result<link::Spawn> ToSpawnMessage(SpawnRequest& request, std::vector<UniqueFd>& fds) {
  link::Spawn spawn;
  spawn.path = request.argv.empty() ? std::string() : request.argv.front();
  spawn.argv = std::move(request.argv);
  spawn.env = std::move(request.env);
  spawn.cwd = std::move(request.cwd);
  spawn.name = std::move(request.tag);
  spawn.new_session = request.new_session;
  spawn.oom_score_adj = request.oom_score_adj;
  spawn.ignore_sigpipe = request.ignore_sigpipe;
  for (auto& [fd, target] : request.fds) {
    fds.push_back(std::move(fd));
    spawn.fd_targets.push_back(target);
  }
  GANTRY_CHECK_OK(SetTerminal(request, spawn));
  if (request.program) {
    spawn.program = static_cast<uint32_t>(fds.size());
    fds.push_back(std::move(request.program));
    spawn.fd_targets.push_back(-1);
  }
  PlaceInCgroups(request.cgroups, spawn, fds);
  for (auto& [fd, kind] : request.namespaces) {
    spawn.join.push_back({static_cast<uint32_t>(fds.size()), static_cast<uint32_t>(kind)});
    fds.push_back(std::move(fd));
    spawn.fd_targets.push_back(-1);
  }
  spawn.new_namespaces = static_cast<uint32_t>(request.new_namespaces);
  spawn.uid_map = ToRanges(request.uid_map);
  spawn.gid_map = ToRanges(request.gid_map);
  SetConfinement(request, spawn);
  spawn.uid = request.uid;
  spawn.gid = request.gid;
  for (const auto& [resource, limit] : request.rlimits) {
    spawn.rlimits.push_back({resource, limit.rlim_cur, limit.rlim_max});
  }
  return spawn;
}

}  // namespace gantry::keeper_client
