// SPDX-License-Identifier: Apache-2.0
//
// The order of a removal: the backend's container, what holds the streams, the streams, the
// backend's objects, mounts, and last the sandbox. The record goes only when all that has gone.
#include "core/task/remover.h"

#include <csignal>
#include <utility>
#include <vector>

#include <gantry/toolkit/mount/unmount.h>

#include "core/async/loop.h"
#include "core/async/worker_pool.h"
#include "core/config/config.h"
#include "core/io/process_io.h"
#include "core/keeper_client/host_processes.h"
#include "core/log/log.h"
#include "core/task/backend_call.h"
#include "core/task/backend_calls.h"
#include "core/task/backend_proxy.h"
#include "core/task/container_cgroup.h"
#include "core/task/members.h"
#include "core/task/parts.h"
#include "core/task/records.h"
#include "core/task/sandboxes.h"
#include "core/task/stdio_host.h"

namespace gantry::task {

/// Its end is no longer needed: an engine that comes now finds no record that asks for it.
void Remover::SetGone(TaskProcess& process) {
  if (process.host) {
    parts_.services.processes.Release(process.host->id());
  }
  process.life.SetGone();
}

void Remover::Leave(Container& container) {
  containers_.Leave(container);
  if (container.init) {
    SetGone(*container.init);
  }
  for (const auto& [id, exec] : container.execs) {
    SetGone(*exec);
  }
  container.left.Set();
}

/// A Create that failed: nothing of it may stay.
async::Task<void> Remover::RollBack(ContainerPtr container) {
  if (!container->init) {
    co_return;
  }
  if (Status removed = co_await Remove(container); !removed) {
    LogError({{"ns", container->group->ns.str()}, {"id", container->id.str()}},
             "undo a failed create: {}", removed.error().message);
  }
  co_await records_.Remove(*container);
  records_.Unprotect(container->instance);
  // Calls that waited for the slot find nothing any more.
  container->init->life.Deleted();
}

/// An end that is known is published before the delete, and whoever waits for it
/// gets it.
async::Task<void> Remover::AwaitPublishedExit(TaskProcess& init) {
  if (init.life.exit() && !init.life.exited().is_set()) {
    co_await init.life.exited().Wait();
  }
}

async::Task<void> Remover::CloseStreams(TaskProcessPtr process) {
  if (!process->io) {
    process->stdio_host->Drop(std::exchange(process->left_streams, {}));
    co_return;
  }
  const std::shared_ptr<io::ProcessIo> streams = std::exchange(process->io, nullptr);
  streams->Started();
  streams->Ended();
  async::OneShot<void> drained;
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
                                                  async::Refusable::kNo),
              "closing does not fail");
  process->stdio_host->ForgetEnded();
}

/// Those of somebody else that are left and empty.
async::Task<void> Remover::RemoveLeftCgroup(Container& container) {
  if (container.cgroup_dirs.empty()) {
    co_return;
  }
  const auto remove = [dirs = container.cgroup_dirs] { return RemoveLeftCgroups(dirs); };
  const Status removed =
      co_await parts_.services.pool.RunFor(container.group->account, remove, async::Refusable::kNo);
  if (!removed) {
    LogWarning({{"id", container.id.str()}}, "what its backend has left: {}",
               removed.error().message);
  }
}

/// Where its spec's cgroups were made for the backend.
async::Task<Status> Remover::RemoveMadeCgroup(Container& container, Deadline deadline) {
  if (!IsOurs(container.cgroup_origin)) {
    if (container.cgroup_origin == CgroupOrigin::kForeign) {
      co_await RemoveLeftCgroup(container);
    }
    container.cgroup_origin = CgroupOrigin::kRemoved;
    co_return Status();
  }
  const auto remove = [cgroup = container.cgroup, scope = container.scope,
                       limit = LeftUntil(deadline)]() -> Status {
    return RemoveContainerCgroup(cgroup, scope, limit);
  };
  GANTRY_CO_CHECK_OK(co_await parts_.services.pool.RunFor(container.group->account, remove,
                                                          async::Refusable::kNo));
  container.cgroup_origin = CgroupOrigin::kRemoved;
  container.cgroup = {};
  container.cgroup_dirs.clear();
  container.SetScope("");
  co_return Status();
}

async::Task<Status> Remover::Remove(ContainerPtr container, std::optional<Deadline> deadline) {
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
        container->group->account, unmount, async::Refusable::kNo);
    if (!unmounted) {
      LogError({{"id", container->id.str()}}, "{}", unmounted.error().message);
    }
  }
  if (!container->sandbox) {
    members_.AbandonSandbox(*container);
  }
  co_await members_.LeaveSandbox(*container);
  co_return Status();
}

/// The keeper has ended it without us (we were silent for too long, or containerd
/// begins anew with the id), or it was in a pod that has gone. What we have of it
/// goes; of a pod's containers' ends nobody else would tell.
async::Task<void> Remover::FreeRemoved(ContainerPtr container, bool with_group) {
  container->abandoned = !with_group;
  co_await container->ready.Wait();
  const async::Slot::Hold hold = co_await container->slot.Acquire();
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

/// The pod ends: so do they.
async::Task<void> Remover::EndMembers(SandboxEntryPtr entry) {
  for (const ContainerPtr& member : containers_.MembersOf(*entry)) {
    if (member->sandbox != entry || !member->init) {
      continue;
    }
    const async::Slot::Hold hold = co_await member->slot.Acquire();
    if (member->sandbox == entry && member->init->life.state() != State::kNone) {
      co_await EndMember(member);
    }
  }
}

/// Kills it and removes every trace; its record stays until it is deleted.
async::Task<void> Remover::EndMember(ContainerPtr member) {
  TaskProcess& init = *member->init;
  if (init.life.state() == State::kRunning || init.life.state() == State::kPaused) {
    IgnoreError(co_await proxy_.KillAll(*member, SIGKILL, parts_.config.timeouts.kill),
                "it has ended just now");
    if (!co_await init.life.exited().WaitFor(parts_.services.loop, parts_.config.timeouts.kill)) {
      LogWarning({{"ns", member->group->ns.str()}, {"id", member->id.str()}},
                 "its end is not known though its sandbox ends");
    }
  }
  const bool had_cgroup = IsOurs(member->cgroup_origin);
  if (Status removed = co_await Remove(member); !removed) {
    LogError({{"ns", member->group->ns.str()}, {"id", member->id.str()}},
             "end it with its sandbox: {}", removed.error().message);
  } else if (had_cgroup) {
    // Of that name there may be another's before this one is deleted.
    records_.Protect(*member);
    IgnoreError(co_await records_.Save(*member), "then its removal is asked for again");
  }
}

}  // namespace gantry::task
