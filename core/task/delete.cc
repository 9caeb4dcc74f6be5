// SPDX-License-Identifier: Apache-2.0
//
// Delete, of a container or an exec, and the keeper's call that ends an
// instance whatever state it is in.
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/mount/unmount.h>

#include "core/log/log.h"
#include "core/task/backend_call.h"
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

os::Task<Result<pb::DeleteResponse>> Service::Delete(const CallContext& call,
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

os::Task<Result<pb::DeleteResponse>> Service::DeleteExec(ContainerPtr container,
                                                         TaskProcessPtr exec, Deadline deadline) {
  const os::Slot::Hold hold = co_await exec->slot.Acquire();
  GANTRY_CO_CHECK_OK(
      CheckLegal(Operation::kDelete, exec->life.state(), Format("exec '{}'", exec->id.str())));
  GANTRY_CO_CHECK_OK(co_await proxy_.Delete(*container, *exec, deadline));
  co_await CloseStreams(exec);
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

os::Task<Result<pb::DeleteResponse>> Service::DeleteInit(ContainerPtr container,
                                                         Deadline deadline) {
  const os::Slot::Hold hold = co_await container->slot.Acquire();
  TaskProcess& init = *container->init;
  GANTRY_CO_CHECK_OK(CheckLegal(Operation::kDelete, init.life.state(),
                                Format("container '{}'", container->id.str())));
  co_await AwaitPublishedExit(init);
  if (init.life.unrecorded()) {
    // Whoever else knows of it is let go by what follows, which another engine may finish.
    IgnoreError(co_await records_.Save(*container), "on a disk that is full a delete goes on");
  }
  GANTRY_CO_CHECK_OK(co_await Remove(container, deadline));
  // One that was only created has been ended by that.
  co_await AwaitPublishedExit(init);
  const pb::DeleteResponse response = ResponseOf(init);
  const ExitStatus exit = init.life.exit().value_or(ExitStatus{0, NowNs()});
  records_.Forget(*container);
  co_await records_.Remove(*container);
  init.life.Deleted();
  Publish(events::TaskDelete(container->subject(), init.pid, exit));
  Leave(*container);
  LogInfo({{"ns", container->group->ns.str()}, {"id", container->id.str()}}, "deleted");
  co_return response;
}

/// An end that is known is published before the delete, and whoever waits for it
/// gets it.
os::Task<void> Service::AwaitPublishedExit(TaskProcess& init) {
  if (init.life.exit() && !init.life.exited().is_set()) {
    co_await init.life.exited().Wait();
  }
}

os::Task<void> Service::CloseStreams(TaskProcessPtr process) {
  if (!process->io) {
    process->stdio_host->Drop(std::exchange(process->left_streams, {}));
    co_return;
  }
  const std::shared_ptr<io::ProcessIo> streams = std::exchange(process->io, nullptr);
  streams->Started();
  streams->Ended();
  os::OneShot<void> drained;
  streams->WhenDrained([&loop = parts_.services.loop, drained]() mutable {
    loop.Post([drained]() mutable { drained.Set(); });
  });
  if (!process->life.never_ran() &&
      !co_await drained.WaitFor(parts_.services.loop, parts_.config.timeouts.stdio_drain)) {
    LogWarning({{"id", process->container.id.str()}, {"exec", process->id.str()}},
               "its last output was not read within {} ms",
               parts_.config.timeouts.stdio_drain.count());
  }
  const auto close = [streams]() -> Status {
    streams->Close();
    return {};
  };
  IgnoreError(co_await calls_.StreamPool().RunFor(process->container.group->account, close,
                                                  os::Refusable::kNo),
              "closing does not fail");
}

/// Where its spec's cgroups were made for the backend.
os::Task<Status> Service::RemoveMadeCgroup(Container& container, Deadline deadline) {
  if (!IsOurs(container.cgroup_origin)) {
    container.cgroup_origin = CgroupOrigin::kRemoved;
    co_return Status();
  }
  const auto remove = [cgroup = container.cgroup, limit = LeftUntil(deadline)]() -> Status {
    return RemoveContainerCgroup(cgroup, limit);
  };
  GANTRY_CO_CHECK_OK(
      co_await parts_.services.pool.RunFor(container.group->account, remove, os::Refusable::kNo));
  container.cgroup_origin = CgroupOrigin::kRemoved;
  container.cgroup = {};
  container.cgroup_dirs.clear();
  co_return Status();
}

os::Task<Status> Service::Remove(ContainerPtr container, std::optional<Deadline> deadline) {
  const Deadline by = deadline.value_or(DeadlineIn(parts_.config.timeouts.remove));
  if (container->backend) {
    GANTRY_CO_CHECK_OK(co_await proxy_.Delete(*container, by));
  }
  for (const auto& [id, exec] : container->execs) {
    exec->CutStartShort();
  }
  container->oom.reset();
  // What is left in there may hold the streams.
  GANTRY_CO_CHECK_OK(co_await RemoveMadeCgroup(*container, by));
  std::vector<TaskProcessPtr> processes;
  for (const auto& [id, exec] : container->execs) {
    processes.push_back(exec);
  }
  if (container->init) {
    processes.push_back(container->init);
  }
  // Execs before the container that they are in.
  std::vector<std::shared_ptr<Process>> objects;
  for (const TaskProcessPtr& process : processes) {
    co_await CloseStreams(process);
    objects.push_back(std::exchange(process->backend, nullptr));
  }
  objects.push_back(std::exchange(container->backend, nullptr));
  co_await proxy_.Free(*container, std::move(objects), DeadlineIn(parts_.config.timeouts.remove));
  if (!container->mounts.empty()) {
    const auto unmount = [container]() -> Result<mount::UnmountReport> {
      return mount::UnmountTree(container->rootfs);
    };
    const Result<mount::UnmountReport> unmounted = co_await parts_.services.pool.RunFor(
        container->group->account, unmount, os::Refusable::kNo);
    if (!unmounted) {
      LogError({{"id", container->id.str()}}, "{}", unmounted.error().message);
    }
  }
  if (!container->sandbox) {
    AbandonSandbox(*container);
  }
  co_await LeaveSandbox(*container);
  co_return Status();
}

/// The keeper has ended it without us (we were silent for too long, or containerd
/// begins anew with the id), or it was in a pod that has gone. What we have of it
/// goes; of a pod's containers' ends nobody else would tell.
os::Task<void> Service::FreeRemoved(ContainerPtr container, bool with_group) {
  container->abandoned = !with_group;
  co_await container->ready.Wait();
  const os::Slot::Hold hold = co_await container->slot.Acquire();
  if (container->left.is_set()) {
    co_return;
  }
  if (with_group && container->init) {
    co_await EndMember(container);
    co_await AwaitPublishedExit(*container->init);
  } else if (const Status removed = co_await Remove(container); !removed) {
    LogError({{"ns", container->group->ns.str()}, {"id", container->id.str()}},
             "free what the keeper has removed: {}", removed.error().message);
  }
  co_await records_.Remove(*container);
  if (container->init) {
    container->init->life.Deleted();
  }
  Leave(*container);
}

void Service::DeleteCall(const link::DeleteCall& call) {
  const link::InstanceAdded* const instance = instances_.Find(call.instance);
  const os::Charged charged(instance == nullptr ? nullptr
                                                : instances_.AccountAt(instance->address));
  os::Start(AnswerDeleteCall(call));
}

/// containerd has lost the instance: kill it and leave nothing. containerd
/// itself publishes the exit then.
os::Task<void> Service::AnswerDeleteCall(link::DeleteCall call) {
  if (co_await pods_.AnswerDeleteCall(call)) {
    co_return;
  }
  link::DeleteDone done;
  done.tag = call.tag;
  done.pid = link::kNoPid;
  done.status = 137;
  done.exited_at_ns = NowNs();
  if (const ContainerPtr container = containers_.FindInstance(call.instance)) {
    co_await container->ready.Wait();
    container->abandoned = true;
    const os::Slot::Hold hold = co_await container->slot.Acquire();
    const Status removed = co_await Remove(container);
    if (!removed) {
      done.code = static_cast<int32_t>(removed.error().code);
      done.message = removed.error().message;
    } else {
      co_await records_.Remove(*container);
      Leave(*container);
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
