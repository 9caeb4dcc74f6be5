// SPDX-License-Identifier: Apache-2.0
//
// The ends of processes, in the order that the header tells, and a container's cgroups.
#include "core/task/exit_relay.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include <gantry/toolkit/cgroup/cgroup.h>
#include <gantry/toolkit/process/backoff.h>

#include "core/async/loop.h"
#include "core/backend/call_deadline.h"
#include "core/backend/context.h"
#include "core/config/config.h"
#include "core/events/event.h"
#include "core/events/publisher.h"
#include "core/io/process_io.h"
#include "core/keeper_client/host_processes.h"
#include "core/log/log.h"
#include "core/metrics/figures.h"
#include "core/os/process.h"
#include "core/task/backend_call.h"
#include "core/task/backend_proxy.h"
#include "core/task/record_writes.h"
#include "core/task/records.h"
#include "core/trace/recorder.h"

namespace gantry::task {
namespace {

/// How long an init's end waits for those of its execs: they die with it, so
/// only a broken backend takes this long.
constexpr auto kExecsEndLimit = std::chrono::seconds(10);

/// How long it waits for their starts that are under way, which then are cut short.
constexpr auto kStartsEndLimit = std::chrono::seconds(1);

/// Between two looks whether a client has read the last output; doubled each time.
constexpr Backoff::Terms kUnread{
    .no_event = "a pipe tells its writers of a read only where it was full",
    .first = std::chrono::microseconds(200),
    .longest = std::chrono::milliseconds(10)};

/// All directories of `cgroup`. On a hybrid node the runtime makes one in the v2
/// tree, too, which holds nothing but has to go.
std::vector<std::string> DirsOf(const cgroup::Cgroup& cgroup, const cgroup::CgroupHierarchy& node) {
  std::vector<std::string> dirs = cgroup.Dirs();
  if (node.mode() == cgroup::CgroupMode::kHybrid && !cgroup.is_unified() && !dirs.empty()) {
    dirs.push_back(node.unified().mount_dir + cgroup.v1().begin()->second.path);
  }
  return dirs;
}

trace::Subject SubjectOf(const TaskProcess& process) {
  return {process.container.group->ns.str(), process.container.id.str(), process.id.str()};
}

/// Null: it has been deleted.
TaskProcessPtr SharedOf(const TaskProcess& process) {
  const Container& container = process.container;
  if (process.is_init()) {
    return container.init;
  }
  const auto found = container.execs.find(process.id);
  return found == container.execs.end() || found->second.get() != &process ? nullptr
                                                                           : found->second;
}

}  // namespace

Status ExitRelay::OnBound(TaskProcess& process, keeper_client::WatchedProcessPtr host) {
  if (process.host && process.host != host) {
    return Fail(Code::kFailedPrecondition, "bind process {} of '{}': bound to {} already",
                host->pid().value, process.container.id.str(), process.host->pid().value);
  }
  process.host = host;
  process.host_pid = host->pid();
  process.start_time = host->start_time();
  process.pid = static_cast<uint32_t>(host->pid().value);
  host->MarkBound(process.context.get());
  if (process.is_init()) {
    records_.Protect(process.container);
  }
  host->OnEnd([this, weak = std::weak_ptr(SharedOf(process))](WaitStatus status) {
    if (const TaskProcessPtr ended = weak.lock()) {
      OnExited(*ended, ExitStatus{status.code(), status.exited_at_ns});
    }
  });
  return {};
}

void ExitRelay::OnPid(TaskProcess& process, HostPid pid) {
  process.pid = static_cast<uint32_t>(pid.value);
}

void ExitRelay::OnExited(TaskProcess& process, ExitStatus exit) {
  ProcessLife& life = process.life;
  const ContainerPtr container = containers_.SharedOf(process.container);
  const TaskProcessPtr self = container ? SharedOf(process) : nullptr;
  if (!self && life.Expect() == ProcessLife::Heard::kNew) {
    return;  // Nobody asks for it any more.
  }
  switch (life.Hear(exit, !process.host || !process.host->Ended())) {
    case ProcessLife::Heard::kHeld:
      parts_.recorder.Note(trace::Kind::kExit, SubjectOf(process), "exit held back", Code::kOk,
                           Format("status {}", exit.status));
      break;
    case ProcessLife::Heard::kAgain:
      if (life.exited().is_set() && process.host && life.on_record()) {
        parts_.services.processes.Release(process.host->id());
      }
      break;
    case ProcessLife::Heard::kNew: {
      const async::Charged charged(container->group->account);
      async::Start(HandleExit(container, self, false));
      break;
    }
  }
}

void ExitRelay::StartPublished(TaskProcess& process) {
  if (const auto held = process.life.Release()) {
    OnExited(process, *held);
  }
}

void ExitRelay::Repeat(ContainerPtr container, TaskProcessPtr process) {
  async::Start(HandleExit(std::move(container), std::move(process), true));
}

async::Task<void> ExitRelay::HandleExit(ContainerPtr container, TaskProcessPtr process,
                                        bool repeated) {
  const trace::OpenStep step =
      parts_.recorder.Begin(trace::Kind::kExit, SubjectOf(*process), "exit", repeated);
  if (process->io) {
    process->io->Ended();
  }
  if (process->is_init()) {
    co_await EndExecsFirst(container);
    if (container->oom) {
      // NOLINTNEXTLINE(bugprone-unchecked-optional-access): this is about its exit.
      const bool killed = process->life.exit()->status == os::kKilledStatus;
      killed ? container->oom->CheckAfterKill() : container->oom->CheckNow();
    }
  }
  if (!repeated) {
    Count(*container, *process);
  }
  process->life.Stopped();
  const Status saved = co_await records_.Save(*container);
  process->life.Recorded(saved.has_value());
  if (!saved) {
    log::Log(LevelOfUnwritten(saved.error()),
             {{"ns", container->group->ns.str()}, {"id", container->id.str()}},
             "record the exit: {}", saved.error().message);
  }
  if (process->io) {
    co_await AwaitReader(process);
  }
  if (const std::optional<ExitStatus>& exit = process->life.exit(); exit && !container->abandoned) {
    parts_.publishers.Publish(
        events::TaskExit(container->subject(), process->id, process->pid, *exit));
  }
  const bool again = process->life.Published();
  FinishExit(*process);
  // NOLINTNEXTLINE(bugprone-unchecked-optional-access): this is about its exit.
  step.Ended(Code::kOk, Format("status {}", process->life.exit()->status));
  if (again) {
    // Nobody has to wait for that.
    IgnoreError(co_await records_.Save(*container), "then it is published twice");
  }
}

/// containerd's client (`Cancel` in its cio package) closes its ends of the fifos as
/// soon as it hears of the exit: what it has not read by then is lost.
async::Task<void> ExitRelay::AwaitReader(TaskProcessPtr process) {
  const std::shared_ptr<io::ProcessIo> streams = process->io;
  const config::Timeouts& timeouts = parts_.config.timeouts;
  async::Loop& loop = parts_.services.loop;
  const async::TimePoint begin = loop.Now();
  async::TimePoint last_read = begin;
  Backoff backoff(kUnread);
  for (size_t left = streams->UnreadBytes(); left > 0;) {
    const async::TimePoint now = loop.Now();
    if (now - last_read >= timeouts.stdio_unread || now - begin >= timeouts.stdio_drain) {
      LogInfo({{"id", process->container.id.str()}, {"exec", process->id.str()}},
              "its client has {} bytes of output still to read, and reads none", left);
      co_return;
    }
    co_await async::Sleep(loop, backoff.Next());
    if (const size_t unread = streams->UnreadBytes(); unread != left) {
      left = unread;
      last_read = loop.Now();
    }
  }
}

void ExitRelay::FinishExit(TaskProcess& process) {
  Container& container = process.container;
  // What is on no record the keeper keeps until the Delete.
  if (process.host_pid && process.life.on_record()) {
    parts_.services.processes.Release({process.host_pid.value, process.start_time});
  }
  if (process.is_init()) {
    records_.Protect(container);
  }
  process.Acknowledge();
  LogInfo(
      {{"ns", container.group->ns.str()}, {"id", container.id.str()}, {"exec", process.id.str()}},
      // NOLINTNEXTLINE(bugprone-unchecked-optional-access): this is about its exit.
      "exited with {}", process.life.exit()->status);
}

/// Starts of execs that are under way come to their end, or are brought to it.
async::Task<void> ExitRelay::EndStarts(ContainerPtr container) {
  const auto execs = container->execs;
  const Deadline until = DeadlineIn(kStartsEndLimit);
  for (const auto& [id, exec] : execs) {
    if (!exec->starting) {
      continue;
    }
    // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): another start may come.
    const async::OneShot<void> done = exec->start_done;
    const async::Duration left = until - backend::CallDeadline::Clock::now();
    if (left <= async::Duration::zero() || !co_await done.WaitFor(parts_.services.loop, left)) {
      exec->CutStartShort();
    }
  }
}

/// Without a pid namespace of its own the kernel does not end what is left.
async::Task<void> ExitRelay::EndExecsFirst(ContainerPtr container) {
  if (!container->private_pids && !container->cgroup.empty()) {
    const Status killed = co_await proxy_.KillAll(*container, SIGKILL, parts_.config.timeouts.kill);
    if (!killed && killed.error().code != Code::kNotFound) {
      LogWarning({{"id", container->id.str()}}, "kill what is left of it: {}",
                 killed.error().message);
    }
  }
  co_await EndStarts(container);
  const auto execs = container->execs;
  const Deadline until = DeadlineIn(kExecsEndLimit);
  for (const auto& [id, exec] : execs) {
    if (exec->life.exited().is_set() || !exec->life.has_started()) {
      continue;
    }
    const async::Duration left = until - backend::CallDeadline::Clock::now();
    if (left <= async::Duration::zero() ||
        !co_await exec->life.exited().WaitFor(parts_.services.loop, left)) {
      LogWarning({{"id", container->id.str()}, {"exec", id.str()}},
                 "its end is not known {} s after its container's", kExecsEndLimit.count());
    }
  }
}

void ExitRelay::OnCgroup(Container& container, cgroup::Cgroup cgroup,
                         std::unique_ptr<cgroup::OomWatch> oom) {
  if (container.oom && container.cgroup == cgroup) {
    return;
  }
  const bool ours = IsOurs(container.cgroup_origin);
  if (ours && !container.cgroup.empty() && container.cgroup != cgroup) {
    LogError({{"backend", container.backend_name}, {"id", container.id.str()}},
             "backend '{}' names cgroups of a container that has those made for it",
             container.backend_name);
    return;
  }
  container.cgroup = std::move(cgroup);
  container.cgroup_dirs =
      ours ? container.cgroup.Dirs() : DirsOf(container.cgroup, parts_.services.cgroups);
  if (oom) {
    oom->Begin(parts_.services.loop, [this, &container] {
      container.oom_told = true;
      TellOutOfMemory(container);
    });
    container.oom = std::move(oom);
  }
  records_.Protect(container);
}

Status ExitRelay::OnMakingCgroup(Container& container, cgroup::Cgroup cgroup, std::string scope) {
  if (container.cgroup_origin == CgroupOrigin::kRemoved) {
    return Fail(Code::kNotFound, "container '{}' is not there any more", container.id.str());
  }
  std::vector<std::string> dirs = cgroup.Dirs();
  const ContainerPtr other =
      dirs.empty() ? nullptr : containers_.FindOtherIn(dirs.front(), container);
  if (other) {
    return Fail(Code::kFailedPrecondition, "make cgroup '{}': it is that of container '{}'",
                dirs.front(), other->id.str());
  }
  container.cgroup_origin = cgroup.empty() ? CgroupOrigin::kForeign : CgroupOrigin::kMaking;
  container.cgroup = std::move(cgroup);
  container.cgroup_dirs = std::move(dirs);
  container.SetScope(std::move(scope));
  records_.Protect(container);
  return {};
}

/// Where the limit is one above, cgroup v1 notifies all below it: the container's own too, in
/// which there may be nothing.
void ExitRelay::OnOutOfMemory(Container& container) {
  if (container.oom) {
    container.oom->CheckNow();
  }
  if (!container.oom_told) {
    TellOutOfMemory(container);
  }
}

void ExitRelay::Count(const Container& container, const TaskProcess& process) {
  if (const std::optional<ExitStatus>& exit = process.life.exit()) {
    figures_.Exit(container.backend_name, !process.is_init(),
                  metrics::EndingOf(exit->status, container.ran_out_of_memory));
  }
}

void ExitRelay::TellOutOfMemory(Container& container) {
  if (container.init && container.init->life.state() != State::kStopped) {
    container.ran_out_of_memory = true;
    ++figures_.out_of_memory[container.backend_name];
    parts_.publishers.Publish(events::TaskOom(container.subject()));
  }
}

}  // namespace gantry::task
