// SPDX-License-Identifier: Apache-2.0
#include "plugins/runc/teardown.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include <gantry/toolkit/cgroup/remove.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/pidfd.h>

namespace gantry::runc {
namespace {

using Clock = std::chrono::steady_clock;

/// What has been killed gets so long to end where the call has that much left, and this
/// in any case.
constexpr std::chrono::seconds kKillLimit{5};
constexpr std::chrono::seconds kLeastKillLimit{1};
/// gantry has taken it before; its own limit is less.
constexpr size_t kMaxSpecBytes = size_t{64} << 20;

bool NeedsRuntime(const RuntimeState& state, const Remains& remains, const Options& options,
                  bool running) {
  return state.kind == StateKind::kUnknown || state.needs_runtime || options.systemd_cgroup ||
         remains.Spec().has_poststop || running;
}

/// None where it is not there, or another run has it: the core's way without an engine, which the
/// runtime itself then tells that the container is gone.
UniqueFd LockFolder(const std::string& path) {
  UniqueFd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const bool locked = folder && flock(folder.get(), LOCK_EX | LOCK_NB) == 0;
  return locked ? std::move(folder) : UniqueFd();
}

void RunDelete(const OciCommand& command, SandboxContext& context, const Remains& remains,
               bool force, std::chrono::milliseconds limit) {
  OciCall call;
  call.verb = "delete";
  call.object = remains.id.str();
  if (force) {
    call.args.emplace_back("--force");
  }
  call.args.push_back(remains.id.str());
  // A bundle that has gone must not keep the rest from going. There is no other place for a
  // file that is nobody's but ours.
  const bool has_bundle = Exists(remains.bundle);
  call.bundle = has_bundle ? remains.bundle : "/";
  call.log_name = has_bundle ? "delete.log" : "";
  call.capture = true;
  // Held by the runtime until it is done, also where this engine ends before: nobody else runs
  // its hooks meanwhile.
  if (UniqueFd lock = LockFolder(remains.bundle)) {
    call.fds.emplace_back(std::move(lock), STDERR_FILENO + 1);
  }
  call.limit = std::min(command.options().delete_timeout, limit);
  if (const Status done = command.Run(std::move(call)); !done) {
    context.Log(LogLevel::kWarning,
                done.error().message + "; taking '" + remains.id.str() + "' apart without it");
  }
}

Clock::time_point EndOf(std::chrono::milliseconds limit) {
  const auto now = Clock::now();
  // In milliseconds: the longest limit has more nanoseconds than can be counted.
  const auto most = std::chrono::floor<std::chrono::milliseconds>(Clock::time_point::max() - now);
  return limit > most ? Clock::time_point::max() : now + limit;
}

/// How long to wait for what is killed now, in a call that is to end at `call_ends`.
std::chrono::milliseconds KillLimit(Clock::time_point call_ends) {
  const auto left =
      std::clamp<Clock::duration>(call_ends - Clock::now(), kLeastKillLimit, kKillLimit);
  return std::chrono::ceil<std::chrono::milliseconds>(left);
}

void KillRecorded(const RuntimeState& state, std::chrono::milliseconds limit) {
  const auto pidfd = OpenPidfd(state.pid);
  // The check comes after the open: then the descriptor is of that process.
  if (!pidfd || !IsAlive(state)) {
    return;
  }
  KillProcess(*pidfd);
  pollfd one = {pidfd->get(), POLLIN, 0};
  poll(&one, 1, static_cast<int>(limit.count()));
}

void KillInit(HostProcess* init, const RuntimeState& state, std::chrono::milliseconds limit) {
  if (init == nullptr) {
    KillRecorded(state, limit);
    return;
  }
  if (!init->Ended()) {
    IgnoreError(init->Signal(SIGKILL), "it may have ended by itself");
    IgnoreError(init->Wait(limit), "its cgroup stays then, which is reported");
  }
}

bool IsUnderstood(const RuntimeState& state) {
  return state.kind == StateKind::kCrun || state.kind == StateKind::kRunc;
}

Result<std::vector<std::string>> CgroupsOf(const RuntimeState& state, const Remains& remains) {
  switch (state.kind) {
    case StateKind::kRunc:
      return state.cgroup_directories;
    case StateKind::kCrun:
      return cgroup::CgroupDirectories(state.cgroup_path);
    case StateKind::kNone:
    case StateKind::kUnknown:
      break;
  }
  return remains.made_cgroup ? cgroup::CgroupDirectories(remains.Spec().cgroups_path)
                             : std::vector<std::string>();
}

Status RemoveCgroupsOf(const RuntimeState& state, const Remains& remains,
                       const std::vector<std::string>& cgroups, std::chrono::milliseconds limit) {
  // With pids of its own nothing of the container is left after its init; who
  // is still in the cgroup has been put there by somebody else.
  const bool spare = IsUnderstood(state) && remains.Spec().private_pids;
  return cgroup::RemoveCgroups(
      cgroups, spare ? cgroup::Leftovers::kSpare : cgroup::Leftovers::kKill, Clock::now() + limit);
}

}  // namespace

SpecFacts Remains::Spec() const {
  if (spec) {
    return *spec;
  }
  const auto text = ReadFile(bundle + "/config.json", kMaxSpecBytes);
  return text ? ReadSpec(*text).value_or(SpecFacts()) : SpecFacts();
}

bool IsAlive(const RuntimeState& state) {
  if (!state.pid) {
    return false;
  }
  const auto start_time = StartTimeOf(state.pid);
  return start_time && *start_time == state.start_time;
}

Status TearDown(const OciCommand& command, SandboxContext& context, const Remains& remains,
                HostProcess* init, std::chrono::milliseconds limit) {
  const auto call_ends = EndOf(limit);
  const std::string directory = command.StateDirectory(remains.id);
  const RuntimeState state = ReadState(directory);
  const bool running = init != nullptr ? !init->Ended() : IsAlive(state);
  if (state.kind != StateKind::kNone && NeedsRuntime(state, remains, command.options(), running)) {
    RunDelete(command, context, remains, running || state.kind == StateKind::kUnknown, limit);
  }
  GANTRY_TRY(const std::vector<std::string> cgroups, CgroupsOf(state, remains));
  if (running) {
    cgroup::ThawCgroups(cgroups);
  }
  KillInit(init, state, KillLimit(call_ends));
  Status removed = RemoveCgroupsOf(state, remains, cgroups, KillLimit(call_ends));
  if (!removed && removed.error().code == Code::kFailedPrecondition) {
    // Not the container's processes: the cgroup is theirs now.
    context.Log(LogLevel::kWarning, removed.error().message);
    removed = {};
  }
  GANTRY_CHECK_OK(removed);
  return RemoveTree(directory);
}

}  // namespace gantry::runc
