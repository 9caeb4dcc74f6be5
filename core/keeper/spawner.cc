// SPDX-License-Identifier: Apache-2.0
#include "core/keeper/spawner.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include <gantry/toolkit/process/pidfd.h>

#include "core/keeper/ending.h"

namespace gantry::keeper {
namespace {

Result<int> FdAt(const std::vector<UniqueFd>& fds, uint32_t index) {
  if (index >= fds.size()) {
    return Fail(Code::kInvalidArgument, "spawn: no descriptor {} in a message with {}", index,
                fds.size());
  }
  return fds[index].get();
}

Status SetDescriptors(const link::Spawn& from, const std::vector<UniqueFd>& fds,
                      os::SpawnRequest& to) {
  if (from.fd_targets.size() != fds.size()) {
    return Fail(Code::kInvalidArgument, "spawn '{}': {} descriptors came instead of {}", from.path,
                fds.size(), from.fd_targets.size());
  }
  for (size_t i = 0; i < fds.size(); ++i) {
    if (from.fd_targets[i] >= 0) {
      to.descriptors.push_back({fds[i].get(), from.fd_targets[i]});
    }
  }
  if (from.cgroup_fd) {
    GANTRY_TRY(to.cgroup_fd, FdAt(fds, *from.cgroup_fd));
  }
  if (from.program) {
    GANTRY_TRY(to.program_fd, FdAt(fds, *from.program));
  }
  if (from.controlling_terminal) {
    GANTRY_TRY(to.controlling_tty_fd, FdAt(fds, *from.controlling_terminal));
    to.new_session = true;
  }
  for (const link::JoinNamespace& join : from.join) {
    GANTRY_TRY(const int fd, FdAt(fds, join.fd_index));
    to.namespaces.push_back({fd, static_cast<int>(join.kind)});
  }
  return {};
}

Status SetConfinement(const link::Spawn& from, os::SpawnRequest& to) {
  if (from.seccomp.size() % sizeof(sock_filter) != 0) {
    return Fail(Code::kInvalidArgument, "spawn '{}': a filter of {} bytes is no program", from.path,
                from.seccomp.size());
  }
  to.seccomp.resize(from.seccomp.size() / sizeof(sock_filter));
  std::ranges::copy(from.seccomp, reinterpret_cast<char*>(to.seccomp.data()));
  to.no_new_privs = from.no_new_privs;
  to.capabilities = from.capabilities;
  to.empty_root = from.empty_root;
  for (const link::ShownPath& one : from.root_paths) {
    to.root_paths.push_back({one.path, one.writable});
  }
  to.propagation = from.propagation;
  return {};
}

std::vector<IdMapping> ToMap(const std::vector<link::IdRange>& ranges) {
  std::vector<IdMapping> map;
  map.reserve(ranges.size());
  for (const link::IdRange& range : ranges) {
    map.push_back({.host_id = range.outside, .container_id = range.inside, .length = range.length});
  }
  return map;
}

/// What is asked for; else what the group has; of open files, of which the keeper has raised
/// its own, else what it was started with.
std::vector<os::SpawnRequest::Limit> LimitsOfChild(const link::Spawn& from,
                                                   const ChildDefaults& defaults,
                                                   const std::vector<link::Rlimit>& of_group) {
  std::vector<os::SpawnRequest::Limit> limits;
  const auto add = [&](int resource, rlimit value, bool as_far_as_allowed) {
    if (!std::ranges::contains(limits, resource, &os::SpawnRequest::Limit::resource)) {
      limits.push_back({resource, value, as_far_as_allowed});
    }
  };
  for (const link::Rlimit& limit : from.rlimits) {
    limits.push_back({limit.resource, {limit.soft, limit.hard}});
  }
  for (const link::Rlimit& limit : of_group) {
    add(limit.resource, {limit.soft, limit.hard}, true);
  }
  add(RLIMIT_NOFILE, defaults.open_files, false);
  return limits;
}

Result<os::SpawnRequest> ToRequest(const link::Spawn& from, const std::vector<UniqueFd>& fds,
                                   const ChildDefaults& defaults,
                                   const std::vector<link::Rlimit>& of_group) {
  os::SpawnRequest to;
  to.executable = from.path;
  to.argv = from.argv;
  to.env = from.env;
  to.cwd = from.cwd.empty() ? "/" : from.cwd;
  to.new_session = from.new_session;
  to.ignore_sigpipe = from.ignore_sigpipe;
  to.cgroup_tasks = from.cgroup_tasks;
  to.oom_score_adj = from.oom_score_adj.value_or(defaults.oom_score_adj);
  to.limits = LimitsOfChild(from, defaults, of_group);
  to.new_namespaces = static_cast<int>(from.new_namespaces);
  to.uid_map = ToMap(from.uid_map);
  to.gid_map = ToMap(from.gid_map);
  to.uid = from.uid;
  to.gid = from.gid;
  to.umask = defaults.umask;
  GANTRY_CHECK_OK(SetConfinement(from, to));
  GANTRY_CHECK_OK(SetDescriptors(from, fds, to));
  return to;
}

}  // namespace

Spawner::~Spawner() {
  for (const auto& [process, pending] : pending_) {
    loop_.Unwatch(pending.watch);
    loop_.Cancel(pending.timer);
  }
}

Result<os::PendingSpawn> Spawner::Start(const link::Spawn& request,
                                        const std::vector<UniqueFd>& fds) {
  if (request.name.size() > link::kMaxStoredName) {
    return Fail(Code::kInvalidArgument, "spawn '{}': its name has {} bytes", request.path,
                request.name.size());
  }
  if (pending_.size() >= kMaxPending) {
    return Fail(Code::kResourceExhausted, "spawn '{}': {} are on their way", request.path,
                kMaxPending);
  }
  GANTRY_TRY(const os::SpawnRequest ready,
             ToRequest(request, fds, defaults_, limits_of_(request.group)));
  return os::BeginSpawn(ready);
}

Result<os::PendingSpawn> Spawner::Run(const link::Command& command,
                                      const std::string& address) const {
  os::SpawnRequest request = RequestOf(command);
  request.limits = LimitsOfChild({}, defaults_, limits_of_(address));
  request.oom_score_adj = defaults_.oom_score_adj;
  request.umask = defaults_.umask;
  return os::BeginSpawn(request);
}

bool Spawner::AnswerError(uint64_t generation, uint64_t tag, const Error& error) {
  link::Spawned answer;
  answer.tag = tag;
  answer.code = static_cast<int32_t>(error.code);
  answer.sys_errno = error.sys_errno;
  answer.message = error.message;
  return answer_(generation, answer, UniqueFd());
}

void Spawner::Begin(uint64_t generation, const link::Spawn& request,
                    const std::vector<UniqueFd>& fds) {
  auto started = Start(request, fds);
  if (!started) {
    AnswerError(generation, request.tag, started.error());
    return;
  }
  const ProcessId key = started->process;
  if (!started->birth.due) {
    exits_.Watch(key, request.name);
  }
  Pending& pending = pending_[key];
  pending.spawn = std::move(*started);
  pending.name = request.name;
  pending.tag = request.tag;
  pending.generation = generation;
  pending.watch =
      loop_.Watch(pending.spawn.status.get(), EPOLLIN, [this, key](uint32_t) { Finish(key); });
  pending.timer = loop_.After(kDeadline, [this, key] {
    Pending& late = pending_.at(key);
    late.late = true;
    // Its end, which may still be far, makes the answer.
    IgnoreError(SendSignal(late.spawn.pidfd.get(), SIGKILL), "it has ended");
  });
}

void Spawner::OnReaped(ProcessId process) {
  const auto found = std::ranges::find_if(pending_, [process](const auto& one) {
    return one.first == process || one.second.spawn.process == process;
  });
  if (found != pending_.end()) {
    Finish(found->first);
  }
}

/// Asked at a birth, which comes after the request.
bool Spawner::MayLive(const Pending& pending) {
  if (pending.late || pending.generation != generation_()) {
    return false;
  }
  exits_.Watch(pending.spawn.process, pending.name);
  return true;
}

void Spawner::Finish(ProcessId key) {
  Pending& pending = pending_.at(key);
  auto finished = os::FinishSpawn(pending.spawn, [&] { return MayLive(pending); });
  if (!finished && finished.error().code == Code::kUnavailable) {
    return;
  }
  loop_.Unwatch(pending.watch);
  loop_.Cancel(pending.timer);
  auto done = pending_.extract(key);
  const uint64_t generation = done.mapped().generation;
  const ProcessId process = done.mapped().spawn.process;
  if (finished) {
    link::Spawned answer;
    answer.tag = done.mapped().tag;
    answer.pid = process.pid;
    answer.start_time = process.start_time;
    answer_(generation, answer, std::move(finished->pidfd));
    return;
  }
  if (AnswerError(generation, done.mapped().tag, finished.error())) {
    exits_.Acknowledge(process);
  } else {
    // The engine in charge knows it from its snapshot only, and needs an end.
    exits_.RecordFailedSpawn(process);
  }
}

}  // namespace gantry::keeper
