// SPDX-License-Identifier: Apache-2.0
//
// Calls that act on what runs: Kill, Pause, Resume, Update, Checkpoint,
// ResizePty, CloseIO. Each goes to the backend first; what it leaves out, the
// core does through the host process or its cgroups.
#include <csignal>
#include <optional>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/cgroup/cgroup.h>
#include <gantry/toolkit/oci/resources.h>

#include "core/config/config.h"
#include "core/io/process_io.h"
#include "core/log/log.h"
#include "core/rpc/typed.h"
#include "core/task/backend_call.h"
#include "core/task/components.h"
#include "core/task/service.h"
#include "proto/containerd/runc.pb.h"

namespace gantry::task {
namespace {

std::string Named(const Container& container) {
  return Format("container '{}'", container.id.str());
}

Result<CheckpointRequest> DecodeCheckpoint(const pb::CheckpointTaskRequest& request) {
  containerd::runc::v1::CheckpointOptions options;
  GANTRY_CHECK_OK(rpc::ParseMessage(request.options().value(), options));
  CheckpointRequest out;
  out.path = options.image_path().empty() ? request.path() : options.image_path();
  out.work_path = options.work_path();
  out.exit = options.exit();
  out.open_tcp = options.open_tcp();
  out.external_unix_sockets = options.external_unix_sockets();
  out.terminal = options.terminal();
  out.file_locks = options.file_locks();
  out.empty_namespaces = {options.empty_namespaces().begin(), options.empty_namespaces().end()};
  out.cgroups_mode = options.cgroups_mode();
  return out;
}

}  // namespace

async::Task<Result<wire::Empty>> Service::Kill(const CallContext& call, pb::KillRequest request) {
  if (request.signal() > static_cast<uint32_t>(SIGRTMAX)) {
    co_return Fail(Code::kInvalidArgument, "kill '{}': {} is not a signal", request.id(),
                   request.signal());
  }
  GANTRY_CO_TRY(const TaskProcessPtr process,
                co_await FindProcess(call, request.id(), request.exec_id()));
  GANTRY_CO_TRY(const ContainerPtr container, co_await Find(call, request.id()));
  if (request.all() && process->is_init()) {
    GANTRY_CO_CHECK_OK(
        co_await proxy_.KillAll(*container, request.signal(), parts_.config.timeouts.kill));
    co_return wire::Empty();
  }
  Status sent = co_await SignalOne(container, process, request.signal(),
                                   DeadlineOf(call, parts_.config.timeouts.kill));
  // The engine before this one may have sent the signal that has ended it.
  if (!sent && !(call.replay && sent.error().code == Code::kNotFound)) {
    co_return std::unexpected(std::move(sent).error());
  }
  co_return wire::Empty();
}

async::Task<Status> Service::SignalOne(ContainerPtr container, TaskProcessPtr process,
                                       uint32_t signal, Deadline deadline) {
  const std::string what =
      process->is_init() ? Named(*container) : Format("exec '{}'", process->id.str());
  co_await AwaitExecStart(process);
  GANTRY_CO_CHECK_OK(CheckLegal(Operation::kKill, process->life.effective_state(), what));
  co_return co_await proxy_.Kill(*container, *process, signal, deadline);
}

async::Task<Status> Service::CallPauseOrResume(ContainerPtr container, bool pause,
                                               Deadline deadline) {
  const auto limit = parts_.config.timeouts.pause;
  if (pause) {
    co_return co_await proxy_.Pause(*container, limit, deadline);
  }
  co_return co_await proxy_.Resume(*container, limit, deadline);
}

/// Done and on record, or neither.
async::Task<Status> Service::SetPaused(ContainerPtr container, bool paused, Deadline deadline) {
  ProcessLife& life = container->init->life;
  const State to = paused ? State::kPaused : State::kRunning;
  GANTRY_CO_CHECK_OK(co_await CallPauseOrResume(container, paused, deadline));
  // It may have ended meanwhile.
  paused ? life.Pause() : life.Resume();
  Status saved = co_await records_.Save(*container);
  if (!saved && life.state() == to) {
    if (const Status undone = co_await CallPauseOrResume(container, !paused, deadline); !undone) {
      LogError({{"id", container->id.str()}}, "it stays {}: {}", paused ? "paused" : "resumed",
               undone.error().message);
    } else {
      paused ? life.Resume() : life.Pause();
    }
  }
  co_return saved;
}

async::Task<Result<wire::Empty>> Service::Pause(const CallContext& call, pb::PauseRequest request) {
  GANTRY_CO_TRY(const ContainerPtr container, co_await Find(call, request.id()));
  const async::Slot::Hold hold = co_await container->slot.Acquire();
  if (!call.replay || container->init->life.state() != State::kPaused) {
    GANTRY_CO_CHECK_OK(
        CheckLegal(Operation::kPause, container->init->life.state(), Named(*container)));
    GANTRY_CO_CHECK_OK(
        co_await SetPaused(container, true, DeadlineOf(call, parts_.config.timeouts.pause)));
  }
  Publish(events::TaskPaused(container->subject()));
  co_return wire::Empty();
}

async::Task<Result<wire::Empty>> Service::Resume(const CallContext& call,
                                                 pb::ResumeRequest request) {
  GANTRY_CO_TRY(const ContainerPtr container, co_await Find(call, request.id()));
  const async::Slot::Hold hold = co_await container->slot.Acquire();
  if (!call.replay || container->init->life.state() != State::kRunning) {
    GANTRY_CO_CHECK_OK(
        CheckLegal(Operation::kResume, container->init->life.state(), Named(*container)));
    GANTRY_CO_CHECK_OK(
        co_await SetPaused(container, false, DeadlineOf(call, parts_.config.timeouts.pause)));
  }
  Publish(events::TaskResumed(container->subject()));
  co_return wire::Empty();
}

async::Task<Result<wire::Empty>> Service::Update(const CallContext& call,
                                                 pb::UpdateTaskRequest request) {
  GANTRY_CO_TRY(const ContainerPtr container, co_await Find(call, request.id()));
  const async::Slot::Hold hold = co_await container->slot.Acquire();
  GANTRY_CO_CHECK_OK(
      CheckLegal(Operation::kUpdate, container->init->life.state(), Named(*container)));
  const std::string json = request.resources().value();
  GANTRY_CO_TRY(cgroup::CgroupResources resources, oci::ParseResources(json));
  CgroupUpdate update{parts_.services.cgroups, std::move(resources), container->bundle,
                      parts_.config.limits.max_spec_bytes, container->weight_formula};
  const Status updated = co_await proxy_.Update(*container, json, update,
                                                DeadlineOf(call, parts_.config.timeouts.pause));
  if (update.formula != container->weight_formula) {
    // From now on the weight does not tell any more, be it that only a part was done.
    container->weight_formula = update.formula;
    GANTRY_CO_CHECK_OK(co_await records_.Save(*container));
  }
  GANTRY_CO_CHECK_OK(updated);
  co_return wire::Empty();
}

async::Task<Result<wire::Empty>> Service::Checkpoint(const CallContext& call,
                                                     pb::CheckpointTaskRequest request) {
  GANTRY_CO_TRY(const ContainerPtr container, co_await Find(call, request.id()));
  const async::Slot::Hold hold = co_await container->slot.Acquire();
  GANTRY_CO_CHECK_OK(
      CheckLegal(Operation::kCheckpoint, container->init->life.state(), Named(*container)));
  GANTRY_CO_TRY(const CheckpointRequest checkpoint, DecodeCheckpoint(request));
  GANTRY_CO_CHECK_OK(co_await proxy_.Checkpoint(*container, checkpoint));
  co_return wire::Empty();
}

async::Task<Result<wire::Empty>> Service::ResizePty(const CallContext& call,
                                                    pb::ResizePtyRequest request) {
  GANTRY_CO_TRY(const TaskProcessPtr process,
                co_await FindProcess(call, request.id(), request.exec_id()));
  GANTRY_CO_TRY(const ContainerPtr container, co_await Find(call, request.id()));
  if (!process->stdio.terminal) {
    co_return wire::Empty();
  }
  GANTRY_CO_CHECK_OK(CheckLegal(Operation::kResize, process->life.effective_state(),
                                Format("the terminal of '{}'", request.id())));
  const ConsoleSize size{static_cast<uint16_t>(request.width()),
                         static_cast<uint16_t>(request.height())};
  Status status = Fail(Code::kUnimplemented, "no backend");
  if (process->is_init() ? container->backend != nullptr : process->backend != nullptr) {
    status = co_await proxy_.Resize(*container, *process, size,
                                    DeadlineOf(call, parts_.config.timeouts.kill));
  }
  if (IsLeftOut(status)) {
    status = process->io ? process->io->Resize(size) : Status();
  }
  GANTRY_CO_CHECK_OK(std::move(status));
  co_return wire::Empty();
}

async::Task<Result<wire::Empty>> Service::CloseIO(const CallContext& call,
                                                  pb::CloseIORequest request) {
  GANTRY_CO_TRY(const TaskProcessPtr process,
                co_await FindProcess(call, request.id(), request.exec_id()));
  GANTRY_CO_TRY(const ContainerPtr container, co_await Find(call, request.id()));
  if (!request.stdin()) {
    co_return wire::Empty();
  }
  process->stdin_closed = true;
  if (process->io) {
    process->io->CloseStdin();
  }
  const State state = process->life.state();
  if (!process->is_init() && (state == State::kCreated || state == State::kStarting)) {
    // Its streams are opened by its Start, which another engine may run.
    GANTRY_CO_CHECK_OK(co_await records_.Save(*container));
  }
  const bool has_backend =
      process->is_init() ? container->backend != nullptr : process->backend != nullptr;
  if (has_backend && process->life.effective_state() != State::kStopped) {
    const Status status = co_await proxy_.CloseStdin(*container, *process,
                                                     DeadlineOf(call, parts_.config.timeouts.kill));
    if (!status && !IsLeftOut(status)) {
      co_return std::unexpected(status.error());
    }
  }
  co_return wire::Empty();
}

}  // namespace gantry::task
