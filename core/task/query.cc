// SPDX-License-Identifier: Apache-2.0
//
// Calls that only ask: State, Wait, Pids, Stats, Connect; and Shutdown, which
// has nothing to do.
#include <unistd.h>

#include <map>
#include <utility>

#include <gantry/toolkit/cgroup/cgroup.h>

#include "core/config/config.h"
#include "core/rpc/ttrpc.h"
#include "core/rpc/typed.h"
#include "core/task/backend_call.h"
#include "core/task/components.h"
#include "core/task/service.h"
#include "core/task/timestamp.h"
#include "proto/containerd/runc.pb.h"

namespace gantry::task {
namespace {

/// What a Go client takes for "no time": the first of January of the year 1.
constexpr int64_t kGoZeroTime = -62135596800;

pb::Status StatusOf(State state) {
  switch (state) {
    case State::kCreated:
    case State::kStarting:
      return pb::CREATED;
    case State::kRunning:
      return pb::RUNNING;
    case State::kPaused:
      return pb::PAUSED;
    case State::kStopped:
    case State::kDeleting:
      return pb::STOPPED;
    case State::kNone:
    case State::kCreating:
      return pb::UNKNOWN;
  }
  return pb::UNKNOWN;
}

void Fill(pb::StateResponse& response, const TaskProcess& process) {
  const Container& container = process.container;
  response.set_id(process.is_init() ? container.id.str() : process.id.str());
  response.set_bundle(container.bundle);
  response.set_pid(process.pid);
  const bool paused =
      container.init->life.state() == State::kPaused && process.life.state() == State::kRunning;
  response.set_status(paused ? pb::PAUSED : StatusOf(process.life.state()));
  response.set_stdin(process.stdio.in);
  response.set_stdout(process.stdio.out);
  response.set_stderr(process.stdio.err);
  response.set_terminal(process.stdio.terminal);
  const std::optional<ExitStatus>& exit = process.life.exit();
  if (process.life.state() == State::kStopped && exit) {
    response.set_exit_status(exit->status);
    SetTimestamp(response.mutable_exited_at(), exit->exited_at_ns);
  } else {
    response.mutable_exited_at()->set_seconds(kGoZeroTime);
  }
}

}  // namespace

async::Task<Result<pb::StateResponse>> Service::GetState(const CallContext& call,
                                                         pb::StateRequest request) {
  GANTRY_CO_TRY(const TaskProcessPtr process,
                co_await FindProcess(call, request.id(), request.exec_id()));
  pb::StateResponse response;
  Fill(response, *process);
  co_return response;
}

async::Task<Result<pb::WaitResponse>> Service::Wait(const CallContext& call,
                                                    pb::WaitRequest request) {
  GANTRY_CO_TRY(const TaskProcessPtr process,
                co_await FindProcess(call, request.id(), request.exec_id()));
  if (!process->life.exited().is_set() && !process->life.gone()) {
    async::OneShot<void> woken;
    call.abandonment->Park([woken]() mutable { woken.Set(); });
    co_await process->life.AwaitEnd(woken);
  }
  if (!process->life.exited().is_set()) {
    if (process->life.gone()) {
      co_return Fail(Code::kNotFound, "container not created: not found");
    }
    co_return Fail(Code::kCanceled, "wait for '{}': the caller has gone", request.id());
  }
  const ExitStatus exit = process->life.exited().value();
  pb::WaitResponse response;
  response.set_exit_status(exit.status);
  SetTimestamp(response.mutable_exited_at(), exit.exited_at_ns);
  co_return response;
}

async::Task<Result<pb::PidsResponse>> Service::Pids(const CallContext& call,
                                                    pb::PidsRequest request) {
  GANTRY_CO_TRY(const ContainerPtr container, co_await Find(call, request.id()));
  std::vector<ProcessInfo> processes;
  if (container->backend && container->init->life.state() != State::kStopped) {
    Result<std::vector<ProcessInfo>> listed =
        co_await proxy_.Processes(*container, DeadlineOf(call, parts_.config.timeouts.pause));
    if (!listed && (container->init->pid == 0 || listed.error().code == Code::kResourceExhausted)) {
      co_return std::unexpected(std::move(listed).error());
    }
    if (listed) {
      processes = std::move(*listed);
    }
  }
  if (processes.empty() && container->init->pid != 0) {
    // Never an empty list for a task that exists: after its own restart
    // containerd would take it for a leak, and its exit code would be lost.
    processes.push_back({container->init->pid, ExecId()});
  }
  std::map<uint32_t, ExecId> execs;
  for (const auto& [id, process] : container->execs) {
    if (!process->life.exit()) {
      execs[process->pid] = id;
    }
  }
  pb::PidsResponse response;
  for (const ProcessInfo& info : processes) {
    pb::ProcessInfo* out = response.add_processes();
    out->set_pid(info.pid);
    const auto known = execs.find(info.pid);
    const ExecId exec = known == execs.end() ? info.exec : known->second;
    if (!exec.empty()) {
      containerd::runc::v1::ProcessDetails details;
      details.set_exec_id(exec.str());
      out->mutable_info()->set_type_url("containerd.runc.v1.ProcessDetails");
      out->mutable_info()->set_value(details.SerializeAsString());
    }
  }
  co_return response;
}

async::Task<Result<pb::StatsResponse>> Service::Stats(const CallContext& call,
                                                      pb::StatsRequest request) {
  GANTRY_CO_TRY(const ContainerPtr container, co_await Find(call, request.id()));
  GANTRY_CO_TRY(stats::TypedMessage measured,
                co_await proxy_.Stats(*container, parts_.services.cgroups.mode(),
                                      DeadlineOf(call, parts_.config.timeouts.pause)));
  pb::StatsResponse response;
  response.mutable_stats()->set_type_url(std::move(measured.type_url));
  response.mutable_stats()->set_value(std::move(measured.value));
  co_return response;
}

async::Task<Result<pb::ConnectResponse>> Service::Connect(const CallContext& call,
                                                          pb::ConnectRequest request) {
  pb::ConnectResponse response;
  // The keeper: the process that lives as long as the connection.
  response.set_shim_pid(static_cast<uint32_t>(getppid()));
  if (const Result<ContainerPtr> container = co_await Find(call, request.id());
      container && (*container)->init) {
    response.set_task_pid((*container)->init->pid);
  }
  co_return response;
}

async::Task<Result<wire::Empty>> Service::Shutdown(const CallContext&, pb::ShutdownRequest) {
  co_return wire::Empty();
}

}  // namespace gantry::task
