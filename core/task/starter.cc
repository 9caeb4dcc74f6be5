// SPDX-License-Identifier: Apache-2.0
//
// An end that comes before the start has been published is held back until it has.
#include "core/task/starter.h"

#include <utility>

#include <gantry/format.h>

#include "core/config/config.h"
#include "core/events/publisher.h"
#include "core/io/process_io.h"
#include "core/keeper_client/host_processes.h"
#include "core/log/log.h"
#include "core/task/backend_call.h"
#include "core/task/backend_calls.h"
#include "core/task/backend_proxy.h"
#include "core/task/exit_relay.h"
#include "core/task/parts.h"
#include "core/task/records.h"
#include "core/task/remover.h"
#include "core/task/requests.h"
#include "core/task/sandboxes.h"
#include "core/task/streams.h"
#include "core/task/unbound.h"

namespace gantry::task {

async::Task<Result<pb::StartResponse>> Starter::StartInit(ContainerPtr container, Deadline deadline,
                                                          bool replay) {
  const async::Slot::Hold hold = co_await container->slot.Acquire();
  TaskProcess& init = *container->init;
  const bool done =
      replay && (init.life.state() == State::kRunning || init.life.state() == State::kPaused ||
                 init.life.state() == State::kStopped);
  if (!done) {
    GANTRY_CO_CHECK_OK(CheckLegal(Operation::kStart, init.life.effective_state(),
                                  Format("container '{}'", container->id.str())));
    init.life.BeginStart();
    const Status started = co_await proxy_.Start(*container, init, deadline);
    if (!started) {
      init.life.StartFailed(started.error().code == Code::kDeadlineExceeded);
      exits_.StartPublished(init);
      co_return std::unexpected(started.error());
    }
    init.life.Started();
    if (Status saved = co_await records_.Save(*container); !saved) {
      LogError({{"id", container->id.str()}}, "record the start: {}", saved.error().message);
    }
    if (!container->checkpoint.empty() && init.io) {
      init.io->Started();
    }
  }
  parts_.publishers.Publish(events::TaskStart(container->subject(), init.pid));
  exits_.StartPublished(init);
  pb::StartResponse response;
  response.set_pid(init.pid);
  co_return response;
}

async::Task<Result<pb::StartResponse>> Starter::StartExec(ContainerPtr container,
                                                          TaskProcessPtr exec, Deadline deadline,
                                                          bool replay) {
  const async::Slot::Hold hold = co_await exec->slot.Acquire();
  const bool done =
      replay && (exec->life.state() == State::kRunning || exec->life.state() == State::kStopped);
  if (!done) {
    if (container->init->life.exit()) {
      co_return Fail(Code::kFailedPrecondition,
                     "start exec '{}': container {} init process is not running", exec->id.str(),
                     container->id.str());
    }
    // One whose start has failed is not started again.
    GANTRY_CO_CHECK_OK(CheckLegal(Operation::kStart, exec->life.effective_state(),
                                  Format("exec '{}'", exec->id.str())));
    exec->life.BeginStart();
    exec->starting = std::make_shared<backend::CallProcesses>();
    exec->start_done = {};
    Status started = co_await RunExec(container, exec, deadline);
    exec->starting = nullptr;
    exec->start_done.Set();
    if (!started) {
      co_await SettleFailed(container, exec, started.error().code == Code::kDeadlineExceeded);
      co_return std::unexpected(std::move(started).error());
    }
  }
  parts_.publishers.Publish(events::TaskExecStarted(container->subject(), exec->id, exec->pid));
  exits_.StartPublished(*exec);
  pb::StartResponse response;
  response.set_pid(exec->pid);
  co_return response;
}

/// It has ended, as far as Wait and Delete go; but it is called created, as by containerd's
/// own shim, and as its users expect of one that never ran.
async::Task<void> Starter::SettleFailed(ContainerPtr container, TaskProcessPtr exec, bool may_run) {
  exec->life.StartFailed(may_run, ExitStatus{255, 0});
  exec->pid = 0;
  co_await remover_.CloseStreams(exec);
  IgnoreError(co_await records_.Save(*container), "the exec never ran; only its id is on record");
  exec->life.Recorded(true);
  exec->Acknowledge();
  if (exec->host && exec->host->Ended()) {
    parts_.services.processes.Release(exec->host->id());
  }
}

async::Task<Status> Starter::RunExec(ContainerPtr container, TaskProcessPtr exec,
                                     Deadline deadline) {
  GANTRY_CO_CHECK_OK(co_await OpenStreams(parts_, calls_, exec));
  exec->life.Starting();
  GANTRY_CO_CHECK_OK(co_await records_.Save(*container));
  const ExecRequest request = ExecRequestOf(*exec);
  GANTRY_CO_TRY(exec->backend, co_await proxy_.Exec(*container, *exec, request, deadline));
  const SandboxEntryPtr sandbox = container->sandbox;
  const uint64_t since = TicksNow();
  GANTRY_CO_CHECK_OK(co_await proxy_.Start(*container, *exec, deadline));
  if (sandbox) {
    GANTRY_CO_CHECK_OK(CheckBound(
        *sandbox, since, *exec,
        Format("start exec '{}' in container '{}'", exec->id.str(), container->id.str())));
  }
  if (exec->io) {
    // Else its container was removed meanwhile, and its streams with it.
    exec->io->Started();
  }
  exec->life.Started();
  if (Status saved = co_await records_.Save(*container); !saved) {
    LogError({{"id", container->id.str()}, {"exec", exec->id.str()}}, "record the start: {}",
             saved.error().message);
  }
  co_return Status();
}

}  // namespace gantry::task
