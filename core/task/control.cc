// SPDX-License-Identifier: Apache-2.0
//
// Calls that act on what runs: Kill, Pause, Resume, Update, Checkpoint,
// ResizePty, CloseIO. Each goes to the backend first; what it leaves out, the
// core does through the host process or its cgroups.
#include <csignal>
#include <optional>
#include <utility>

#include <gantry/format.h>

#include "core/log/log.h"
#include "core/oci/resources.h"
#include "core/oci/spec.h"
#include "core/os/fs.h"
#include "core/os/scope_update.h"
#include "core/os/weight_formula.h"
#include "core/rpc/typed.h"
#include "core/task/backend_call.h"
#include "core/task/service.h"
#include "proto/containerd/runc.pb.h"

namespace gantry::task {
namespace {

bool LeftOut(const Status& status) {
  return !status && status.error().code == Code::kUnimplemented;
}

std::string Named(const Container& container) {
  return Format("container '{}'", container.id.str());
}

/// As whoever made the container makes its weight of shares: by the weight that it got for
/// the shares of its config.json; by that of `asked`, where this is set already and only the
/// record was not written. Else as runtimes do it today.
os::CpuWeightFormula ChooseFormula(const Parts& parts, const os::Cgroup& cgroup,
                                   const std::string& bundle, uint64_t asked) {
  const auto spec = oci::ReadSpec(bundle, parts.config.limits.max_spec_bytes);
  const uint64_t first = spec ? spec->resources.cpu.shares.value_or(0) : 0;
  return os::FindWeightFormula(parts.services.cgroups, cgroup, {first, asked})
      .value_or(os::CpuWeightFormula::kQuadratic);
}

Status SignalEvery(const os::Cgroup& cgroup, uint32_t signal, std::chrono::milliseconds limit) {
  return signal == SIGKILL ? cgroup.Kill(limit) : cgroup.Signal(static_cast<int>(signal));
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

os::Task<Status> Service::SignalAll(ContainerPtr container, uint32_t signal) {
  const std::chrono::milliseconds limit = parts_.config.timeouts.kill;
  const auto kill_all = [signal, limit](const BackendCall& backend) -> Status {
    Status status = Fail(Code::kUnimplemented, "no backend");
    if (backend.container) {
      status = backend.OnContainer(
          [signal](gantry::Container& object) { return object.KillAll(signal); });
    }
    if (!LeftOut(status)) {
      return status;
    }
    if (backend.cgroup.empty() || !backend.cgroup.Exists()) {
      return {};
    }
    return SignalEvery(backend.cgroup, signal, limit);
  };
  co_return co_await calls_.Run("kill all of", BackendCall(*container).By(DeadlineIn(limit)),
                                kill_all, os::Refusable::kNo);
}

os::Task<Result<wire::Empty>> Service::Kill(const CallContext& call, pb::KillRequest request) {
  if (request.signal() > static_cast<uint32_t>(SIGRTMAX)) {
    co_return Fail(Code::kInvalidArgument, "kill '{}': {} is not a signal", request.id(),
                   request.signal());
  }
  GANTRY_CO_TRY(const TaskProcessPtr process,
                co_await FindProcess(call, request.id(), request.exec_id()));
  GANTRY_CO_TRY(const ContainerPtr container, co_await Find(call, request.id()));
  if (request.all() && process->is_init()) {
    GANTRY_CO_CHECK_OK(co_await SignalAll(container, request.signal()));
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

/// As with the runc shim: whom to signal is not known before the start of an exec is done.
os::Task<void> Service::AwaitExecStart(TaskProcessPtr process) {
  if (!process->is_init() && process->start_pending) {
    const os::Slot::Hold started = co_await process->slot.Acquire();
  }
}

os::Task<Status> Service::SignalOne(ContainerPtr container, TaskProcessPtr process, uint32_t signal,
                                    Deadline deadline) {
  const std::string what =
      process->is_init() ? Named(*container) : Format("exec '{}'", process->id.str());
  co_await AwaitExecStart(process);
  GANTRY_CO_CHECK_OK(
      CheckLegal(Operation::kKill, process->exit ? State::kStopped : process->state, what));
  BackendCall target = BackendCall(*container, process.get()).By(deadline);
  const engine::WatchedProcessPtr host = process->host;
  const bool is_init = process->is_init();
  if (!target.process && !host) {
    co_return Fail(Code::kFailedPrecondition,
                   "kill {}: it has not been started: failed precondition", what);
  }
  co_return co_await calls_.Run(
      "kill", std::move(target),
      [signal, host, is_init](const BackendCall& backend) -> Status {
        Status status = Fail(Code::kUnimplemented, "no backend");
        if (backend.process) {
          status =
              backend.OnProcess([signal](gantry::Process& object) { return object.Kill(signal); });
        }
        if (LeftOut(status) && host) {
          status = host->Signal(static_cast<int>(signal));
          if (!status && status.error().code == Code::kNotFound) {
            status = Fail(Code::kNotFound, "process already finished: not found");
          }
        }
        // Whoever has sent it: what is frozen does not take it.
        if (is_init && signal == SIGKILL) {
          backend.cgroup.ThawToDie();
        }
        return status;
      },
      os::Refusable::kNo);
}

os::Task<Status> Service::CallPauseOrResume(ContainerPtr container, bool pause, Deadline deadline) {
  const auto limit = parts_.config.timeouts.pause;
  co_return co_await calls_.Run(
      pause ? "pause" : "resume", BackendCall(*container).By(deadline),
      [limit, pause](const BackendCall& backend) -> Status {
        Status status = backend.OnContainer([pause](gantry::Container& object) {
          return pause ? object.Pause() : object.Resume();
        });
        if (!LeftOut(status) || backend.cgroup.empty()) {
          return status;
        }
        return pause ? backend.cgroup.Freeze(limit) : backend.cgroup.Thaw(limit);
      });
}

/// Done and on record, or neither.
os::Task<Status> Service::SetPaused(ContainerPtr container, bool paused, Deadline deadline) {
  const State from = paused ? State::kRunning : State::kPaused;
  const State to = paused ? State::kPaused : State::kRunning;
  GANTRY_CO_CHECK_OK(co_await CallPauseOrResume(container, paused, deadline));
  State& state = container->init->state;
  if (state == from) {
    state = to;
  }
  Status saved = co_await Save(*container);
  if (!saved && state == to) {
    if (const Status undone = co_await CallPauseOrResume(container, !paused, deadline); !undone) {
      LogError({{"id", container->id.str()}}, "it stays {}: {}", paused ? "paused" : "resumed",
               undone.error().message);
    } else if (state == to) {
      state = from;
    }
  }
  co_return saved;
}

os::Task<Result<wire::Empty>> Service::Pause(const CallContext& call, pb::PauseRequest request) {
  GANTRY_CO_TRY(const ContainerPtr container, co_await Find(call, request.id()));
  const os::Slot::Hold hold = co_await container->slot.Acquire();
  if (!call.replay || container->init->state != State::kPaused) {
    GANTRY_CO_CHECK_OK(CheckLegal(Operation::kPause, container->init->state, Named(*container)));
    GANTRY_CO_CHECK_OK(
        co_await SetPaused(container, true, DeadlineOf(call, parts_.config.timeouts.pause)));
  }
  Publish(events::TaskPaused(container->subject()));
  co_return wire::Empty();
}

os::Task<Result<wire::Empty>> Service::Resume(const CallContext& call, pb::ResumeRequest request) {
  GANTRY_CO_TRY(const ContainerPtr container, co_await Find(call, request.id()));
  const os::Slot::Hold hold = co_await container->slot.Acquire();
  if (!call.replay || container->init->state != State::kRunning) {
    GANTRY_CO_CHECK_OK(CheckLegal(Operation::kResume, container->init->state, Named(*container)));
    GANTRY_CO_CHECK_OK(
        co_await SetPaused(container, false, DeadlineOf(call, parts_.config.timeouts.pause)));
  }
  Publish(events::TaskResumed(container->subject()));
  co_return wire::Empty();
}

os::Task<Result<wire::Empty>> Service::Update(const CallContext& call,
                                              pb::UpdateTaskRequest request) {
  GANTRY_CO_TRY(const ContainerPtr container, co_await Find(call, request.id()));
  const os::Slot::Hold hold = co_await container->slot.Acquire();
  GANTRY_CO_CHECK_OK(CheckLegal(Operation::kUpdate, container->init->state, Named(*container)));
  const std::string json = request.resources().value();
  GANTRY_CO_TRY(os::CgroupResources resources, oci::ParseResources(json));
  const std::string bundle = container->bundle;
  std::optional<os::CpuWeightFormula> formula = container->weight_formula;
  const Status updated = co_await calls_.Run(
      "update", BackendCall(*container).By(DeadlineOf(call, parts_.config.timeouts.pause)),
      [&](const BackendCall& backend) -> Status {
        Status status =
            backend.OnContainer([&](gantry::Container& object) { return object.Update(json); });
        if (!LeftOut(status) || backend.cgroup.empty()) {
          return status;
        }
        if (const uint64_t shares = resources.cpu.shares.value_or(0);
            shares != 0 && backend.cgroup.is_unified()) {
          if (!formula) {
            formula = ChooseFormula(parts_, backend.cgroup, bundle, shares);
          }
          resources.cpu.weight_formula = *formula;
        }
        return os::UpdateWithScope(parts_.services.cgroups, backend.cgroup, resources);
      });
  if (formula != container->weight_formula) {
    // From now on the weight does not tell any more, be it that only a part was done.
    container->weight_formula = formula;
    GANTRY_CO_CHECK_OK(co_await Save(*container));
  }
  GANTRY_CO_CHECK_OK(updated);
  co_return wire::Empty();
}

os::Task<Result<wire::Empty>> Service::Checkpoint(const CallContext& call,
                                                  pb::CheckpointTaskRequest request) {
  GANTRY_CO_TRY(const ContainerPtr container, co_await Find(call, request.id()));
  const os::Slot::Hold hold = co_await container->slot.Acquire();
  GANTRY_CO_CHECK_OK(CheckLegal(Operation::kCheckpoint, container->init->state, Named(*container)));
  GANTRY_CO_TRY(const CheckpointRequest checkpoint, DecodeCheckpoint(request));
  GANTRY_CO_CHECK_OK(co_await calls_.Run(
      "checkpoint", BackendCall(*container), [&](const BackendCall& backend) -> Status {
        GANTRY_CHECK_OK(os::MakeDirs(checkpoint.path, 0700));
        return backend.OnContainer(
            [&](gantry::Container& object) { return object.Checkpoint(checkpoint); });
      }));
  co_return wire::Empty();
}

os::Task<Result<wire::Empty>> Service::ResizePty(const CallContext& call,
                                                 pb::ResizePtyRequest request) {
  GANTRY_CO_TRY(const TaskProcessPtr process,
                co_await FindProcess(call, request.id(), request.exec_id()));
  GANTRY_CO_TRY(const ContainerPtr container, co_await Find(call, request.id()));
  if (!process->stdio.terminal) {
    co_return wire::Empty();
  }
  GANTRY_CO_CHECK_OK(CheckLegal(Operation::kResize,
                                process->exit ? State::kStopped : process->state,
                                Format("the terminal of '{}'", request.id())));
  const ConsoleSize size{static_cast<uint16_t>(request.width()),
                         static_cast<uint16_t>(request.height())};
  BackendCall target =
      BackendCall(*container, process.get()).By(DeadlineOf(call, parts_.config.timeouts.kill));
  Status status = Fail(Code::kUnimplemented, "no backend");
  if (target.process) {
    status = co_await calls_.Run(
        "resize", std::move(target),
        [size](const BackendCall& backend) {
          return backend.OnProcess([&](gantry::Process& object) { return object.Resize(size); });
        },
        os::Refusable::kYes, os::CallKind::kShort);
  }
  if (LeftOut(status)) {
    status = process->io ? process->io->Resize(size) : Status();
  }
  GANTRY_CO_CHECK_OK(std::move(status));
  co_return wire::Empty();
}

os::Task<Result<wire::Empty>> Service::CloseIO(const CallContext& call,
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
  BackendCall target =
      BackendCall(*container, process.get()).By(DeadlineOf(call, parts_.config.timeouts.kill));
  if (target.process && process->state != State::kStopped && !process->exit) {
    const Status status = co_await calls_.Run(
        "close stdin of", std::move(target),
        [](const BackendCall& backend) {
          return backend.OnProcess([](gantry::Process& object) { return object.CloseStdin(); });
        },
        os::Refusable::kYes, os::CallKind::kShort);
    if (!status && !LeftOut(status)) {
      co_return std::unexpected(status.error());
    }
  }
  co_return wire::Empty();
}

}  // namespace gantry::task
