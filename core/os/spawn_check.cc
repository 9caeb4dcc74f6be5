// SPDX-License-Identifier: Apache-2.0
#include "core/os/spawn_check.h"

#include <sched.h>

#include <algorithm>
#include <vector>

namespace gantry::os {

namespace {

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
