// SPDX-License-Identifier: Apache-2.0
//
// A process as its record has it, its streams from the descriptor store, its host process from the
// keeper; and, once all replayed calls have come, what has to be told of it.
#include "core/recovery/process_recovery.h"

#include <optional>
#include <utility>

#include <gantry/toolkit/process/process_id.h>

#include "core/async/loop.h"
#include "core/async/worker_pool.h"
#include "core/config/config.h"
#include "core/events/publisher.h"
#include "core/io/process_io.h"
#include "core/io/relay.h"
#include "core/keeper_client/host_processes.h"
#include "core/keeper_client/keeper_link.h"
#include "core/log/log.h"
#include "core/task/backend_call.h"
#include "core/task/components.h"
#include "core/task/requests.h"
#include "core/task/shortage.h"
#include "core/task/stdio_host.h"

namespace gantry::task {

ProcessRecovery::ProcessRecovery(Components& with)
    : parts_(with.parts),
      sandboxes_(with.sandboxes),
      proxy_(with.proxy),
      exits_(with.exits),
      factory_(with.factory),
      replays_(with.replays) {}

void ProcessRecovery::Restore(TaskProcess& process, const store::StdioPaths& stdio, State state,
                              const store::ProcessRecord& record) {
  process.stdio = stdio;
  process.host_pid = record.pid;
  process.start_time = record.start_time;
  process.SetSaved(record.saved);
  process.pid = static_cast<uint32_t>(record.shown_pid ? record.shown_pid.value : record.pid.value);
  std::optional<ExitStatus> exit;
  if (record.exited) {
    exit = ExitStatus{record.exit_status, record.exited_at_ns};
  }
  process.life.Restore(state, exit, record.unpublished);
}

async::Task<void> ProcessRecovery::RecoverStreams(TaskProcessPtr process) {
  if (process->life.state() == (process->is_init() ? State::kCreating : State::kCreated)) {
    process->left_streams = NamesBelow(sandboxes_.stored(), process->stdio_host->prefix());
    co_return;
  }
  const std::string& prefix = process->stdio_host->prefix();
  std::vector<io::StoredFd> stored =
      co_await TakeStored(parts_.services.link, prefix, NamesBelow(sandboxes_.stored(), prefix));
  if (stored.empty() && process->life.exit() && !io::ProcessIo::Streams(StdioPathsOf(*process))) {
    co_return;
  }
  io::StdioOptions options = StdioOptionsOf(*process, parts_.config);
  options.undecided = !process->is_init() && process->life.state() == State::kStarting;
  const io::StdioPaths paths = StdioPathsOf(*process);
  const auto recover = [&]() -> Result<std::shared_ptr<io::ProcessIo>> {
    GANTRY_TRY(auto opened, io::ProcessIo::Recover(parts_.relay, *process->stdio_host, paths,
                                                   options, std::move(stored)));
    return WithHost(std::move(opened), process->stdio_host);
  };
  Result<std::shared_ptr<io::ProcessIo>> recovered =
      io::ProcessIo::RecoverBlocks(paths)
          ? co_await parts_.services.pool.RunFor(options.account, recover, async::Refusable::kNo)
          : recover();
  if (!recovered) {
    LogError({{"id", process->container.id.str()}, {"exec", process->id.str()}}, "its streams: {}",
             recovered.error().message);
    co_return;
  }
  process->io = std::move(*recovered);
  const bool made = process->life.state() == State::kCreated && process->is_init() &&
                    process->container.checkpoint.empty();
  if (made || process->life.state() == State::kRunning || process->life.state() == State::kPaused ||
      process->life.state() == State::kStopped) {
    process->io->Started();
  }
  if (process->life.exit()) {
    process->io->Ended();
  }
}

async::Task<void> ProcessRecovery::RecoverExec(ContainerPtr container,
                                               const store::ExecRecord& saved) {
  const TaskProcessPtr exec = factory_.NewProcess(*container, saved.id);
  exec->SetSpec(saved.spec_json);
  exec->stdin_closed = saved.stdin_closed;
  Restore(*exec, saved.stdio, saved.state, saved.process);
  container->execs[saved.id] = exec;
  const bool runs = saved.state == State::kStarting || saved.state == State::kRunning;
  if (runs) {
    exec->life.HoldEnds();
  }
  async::Scope parts;
  if (exec->life.state() == State::kRunning) {
    // Else its backend may find that it never ran.
    parts.Spawn("process", BindByRecord(exec));
  }
  parts.Spawn("streams", RecoverStreams(exec));
  co_await parts.Join();
  if (exec->life.exit() || !runs) {
    exec->life.DropHeld();
    co_return;
  }
  const Status found = co_await RecoverExecBackend(container, exec);
  if (found) {
    if (exec->io) {
      exec->io->Started();
    }
    co_return;
  }
  if (exec->life.state() == State::kStarting && found.error().code == Code::kAborted) {
    // It never ran; the Start that is replayed runs it.
    exec->life.StartUndone();
    exec->SetSaved({});
    exec->host_pid = {};
    exec->start_time = 0;
    exec->pid = 0;
    exec->io.reset();
    co_await RecoverStreams(exec);
    co_return;
  }
  LogError({{"id", container->id.str()}, {"exec", exec->id.str()}},
           "its backend cannot recover it: {}", found.error().message);
  co_await AdoptByRecord(exec, kUnknownStatus);
}

async::Task<Status> ProcessRecovery::RecoverExecBackend(ContainerPtr container,
                                                        TaskProcessPtr exec) {
  if (!container->backend) {
    co_return Fail(Code::kUnavailable, "its container was not recovered");
  }
  const ExecRequest request = ExecRequestOf(*exec);
  const Deadline deadline = DeadlineIn(parts_.config.timeouts.create);
  Shortage shortage(parts_.services.loop);
  Status failed;
  do {
    Result<std::unique_ptr<Process>> recovered =
        co_await proxy_.RecoverExec(*container, *exec, request, deadline);
    if (recovered) {
      exec->backend = *std::move(recovered);
      co_return Status();
    }
    failed = std::unexpected(std::move(recovered).error());
  } while (co_await shortage.MayPass(failed));
  co_return failed;
}

/// What is on record is watched before its backend is asked, which then finds it so.
async::Task<void> ProcessRecovery::BindByRecord(TaskProcessPtr process) {
  if (process->life.exit() || !process->host_pid) {
    co_return;
  }
  auto host = co_await parts_.services.processes.Adopt(process->host_pid, process->start_time);
  if (host) {
    IgnoreError(exits_.OnBound(*process, std::move(*host)), "nothing is bound to it yet");
  }
}

/// Without its backend a process still has its exit: its host process's, or, where
/// it has none, `status`.
async::Task<void> ProcessRecovery::AdoptByRecord(TaskProcessPtr process, uint32_t status) {
  if (process->host || process->life.has_end()) {
    co_return;
  }
  co_await BindByRecord(process);
  if (!process->host) {
    exits_.OnExited(*process, ExitStatus{status, NowNs()});
  }
}

/// Publishes what an engine's end may have kept back, in the events' order.
async::Task<void> ProcessRecovery::SettleStarts(ContainerPtr container) {
  co_await replays_.all_came().Wait();
  const auto execs = container->execs;
  for (const auto& [id, exec] : execs) {
    SettleStart(container, exec);
  }
  SettleStart(container, container->init);
}

void ProcessRecovery::SettleStart(const ContainerPtr& container, const TaskProcessPtr& process) {
  if (process->life.exit()) {
    RepeatExit(container, process);
    process->life.DropHeld();
    return;
  }
  const bool was_starting = process->life.state() == State::kStarting;
  if (was_starting) {
    process->life.Started();
  }
  if (!process->life.is_starting() || replays_.Contains(*process)) {
    return;
  }
  if (was_starting) {
    // Its caller has gone; others may have seen that it was added.
    parts_.publishers.Publish(
        events::TaskExecStarted(container->subject(), process->id, process->pid));
  }
  exits_.StartPublished(*process);
}

/// An end that is on record: containerd may not have been told.
void ProcessRecovery::RepeatExit(const ContainerPtr& container, const TaskProcessPtr& process) {
  const ProcessId id{process->host_pid.value, process->start_time};
  if (process->life.unpublished() ||
      (process->host_pid && parts_.services.processes.IsUnacknowledged(id))) {
    parts_.services.processes.Claim(id);
    exits_.Repeat(container, process);
    return;
  }
  if (process->is_init() || process->life.state() != State::kCreated) {
    process->life.Stopped();
  }
  process->Acknowledge();
}

}  // namespace gantry::task
