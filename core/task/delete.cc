// SPDX-License-Identifier: Apache-2.0
//
// Delete, of a container or an exec, and the keeper's call that ends an
// instance whatever state it is in.
#include <utility>

#include <gantry/format.h>

#include "core/async/loop.h"
#include "core/config/config.h"
#include "core/keeper_client/host_processes.h"
#include "core/keeper_client/keeper_link.h"
#include "core/link/messages.h"
#include "core/log/log.h"
#include "core/task/backend_call.h"
#include "core/task/components.h"
#include "core/task/container_cgroup.h"
#include "core/task/service.h"
#include "core/task/timestamp.h"

namespace gantry::task {
namespace {

pb::DeleteResponse ResponseOf(uint32_t pid, ExitStatus exit) {
  pb::DeleteResponse response;
  response.set_pid(pid);
  response.set_exit_status(exit.status);
  SetTimestamp(response.mutable_exited_at(), exit.exited_at_ns);
  return response;
}

pb::DeleteResponse ResponseOf(const TaskProcess& process) {
  return ResponseOf(process.pid, process.life.exit().value_or(ExitStatus{0, NowNs()}));
}

/// What an earlier engine deleted and died before it could say so.
std::optional<pb::DeleteResponse> DeletedExec(const Container& container,
                                              const std::string& exec_id) {
  for (const auto& [id, process] : container.deleted_execs) {
    if (id.str() == exec_id) {
      return ResponseOf(static_cast<uint32_t>(process.shown_pid.value),
                        {process.exit_status, process.exited_at_ns});
    }
  }
  return std::nullopt;
}

}  // namespace

async::Task<Result<pb::DeleteResponse>> Service::Delete(const CallContext& call,
                                                        pb::DeleteRequest request) {
  const Deadline deadline = DeadlineOf(call, parts_.config.timeouts.remove);
  Result<TaskProcessPtr> process = co_await FindProcess(call, request.id(), request.exec_id());
  if (!process && call.replay && request.exec_id().empty()) {
    // An earlier engine had done it and died before it could say so.
    if (const link::InstanceAdded* ended = instances_.FindForgotten(call.address, request.id())) {
      const link::InstanceAdded instance = *ended;
      GANTRY_CO_TRY(const GroupPtr group, instances_.GroupAt(call.address));
      GANTRY_CO_TRY(const ContainerId id, ContainerId::Parse(request.id()));
      Publish(events::TaskDelete({group->ttrpc_address, group->ns, id}, instance.pid,
                                 {instance.status, instance.exited_at_ns}));
      co_return ResponseOf(instance.pid, {instance.status, instance.exited_at_ns});
    }
  }
  if (!process && !(call.replay && !request.exec_id().empty())) {
    co_return std::unexpected(std::move(process).error());
  }
  GANTRY_CO_TRY(const ContainerPtr container, co_await Find(call, request.id()));
  if (!process) {
    if (auto deleted = DeletedExec(*container, request.exec_id())) {
      co_return *std::move(deleted);
    }
    co_return std::unexpected(std::move(process).error());
  }
  if ((*process)->is_init()) {
    co_return co_await DeleteInit(container, deadline);
  }
  co_return co_await DeleteExec(container, *process, deadline);
}

async::Task<Result<pb::DeleteResponse>> Service::DeleteExec(ContainerPtr container,
                                                            TaskProcessPtr exec,
                                                            Deadline deadline) {
  const async::Slot::Hold hold = co_await exec->slot.Acquire();
  GANTRY_CO_CHECK_OK(
      CheckLegal(Operation::kDelete, exec->life.state(), Format("exec '{}'", exec->id.str())));
  GANTRY_CO_CHECK_OK(co_await proxy_.Delete(*container, *exec, deadline));
  co_await remover_.CloseStreams(exec);
  co_await proxy_.Free(*container, {std::exchange(exec->backend, nullptr)},
                       DeadlineIn(parts_.config.timeouts.remove));
  container->execs.erase(exec->id);
  container->deleted_execs[exec->id] = ToProcessRecord(*exec);
  if (Status saved = co_await records_.Save(*container); !saved) {
    container->deleted_execs.erase(exec->id);
    container->execs.try_emplace(exec->id, exec);
    co_return std::unexpected(std::move(saved).error());
  }
  exec->life.Deleted();
  exec->life.SetGone();
  if (exec->host_pid) {
    parts_.services.processes.Release({exec->host_pid.value, exec->start_time});
  }
  // By the next turn the answer is on its way.
  parts_.services.loop.Post([container, id = exec->id] { container->deleted_execs.erase(id); });
  co_return ResponseOf(*exec);
}

async::Task<Result<pb::DeleteResponse>> Service::DeleteInit(ContainerPtr container,
                                                            Deadline deadline) {
  const async::Slot::Hold hold = co_await container->slot.Acquire();
  TaskProcess& init = *container->init;
  GANTRY_CO_CHECK_OK(CheckLegal(Operation::kDelete, init.life.state(),
                                Format("container '{}'", container->id.str())));
  co_await Remover::AwaitPublishedExit(init);
  if (init.life.unrecorded()) {
    // Whoever else knows of it is let go by what follows, which another engine may finish.
    IgnoreError(co_await records_.Save(*container), "on a disk that is full a delete goes on");
  }
  GANTRY_CO_CHECK_OK(co_await remover_.Remove(container, deadline));
  // One that was only created has been ended by that.
  co_await Remover::AwaitPublishedExit(init);
  const pb::DeleteResponse response = ResponseOf(init);
  const ExitStatus exit = init.life.exit().value_or(ExitStatus{0, NowNs()});
  records_.Forget(*container);
  co_await records_.Remove(*container);
  init.life.Deleted();
  Publish(events::TaskDelete(container->subject(), init.pid, exit));
  remover_.Leave(*container);
  LogInfo({{"ns", container->group->ns.str()}, {"id", container->id.str()}}, "deleted");
  co_return response;
}

/// containerd has lost the instance: kill it and leave nothing. containerd
/// itself publishes the exit then.
async::Task<void> Service::AnswerDeleteCall(link::DeleteCall call) {
  link::DeleteDone done;
  done.tag = call.tag;
  done.pid = link::kNoPid;
  done.status = 137;
  done.exited_at_ns = NowNs();
  if (const ContainerPtr container = containers_.FindInstance(call.instance)) {
    co_await container->ready.Wait();
    container->abandoned = true;
    const async::Slot::Hold hold = co_await container->slot.Acquire();
    const Status removed = co_await remover_.Remove(container);
    if (!removed) {
      done.code = static_cast<int32_t>(removed.error().code);
      done.message = removed.error().message;
    } else {
      co_await records_.Remove(*container);
      remover_.Leave(*container);
    }
    if (container->init && container->init->pid != 0) {
      done.pid = container->init->pid;
    }
    if (const auto exit = container->init ? container->init->life.exit() : std::nullopt) {
      done.status = exit->status;
      done.exited_at_ns = exit->exited_at_ns;
    }
  }
  parts_.services.link.AnswerDelete(done);
}

}  // namespace gantry::task
