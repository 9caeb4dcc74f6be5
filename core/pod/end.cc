// SPDX-License-Identifier: Apache-2.0
//
// How a pod ends: on request, by itself, with its keeper's instance, and what is
// removed then.
#include <csignal>
#include <string>
#include <utility>

#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/mount/unmount.h>

#include "core/async/loop.h"
#include "core/async/worker_pool.h"
#include "core/config/config.h"
#include "core/keeper_client/host_processes.h"
#include "core/keeper_client/keeper_link.h"
#include "core/link/messages.h"
#include "core/link/record_peek.h"
#include "core/log/log.h"
#include "core/oci/bundle.h"
#include "core/pod/sandbox_service.h"
#include "core/task/components.h"
#include "core/task/record_writes.h"

namespace gantry::task {

async::Task<Status> SandboxService::End(PodPtr pod, Deadline deadline) {
  if (pod->life.state() == State::kStopped) {
    co_return Status();
  }
  if (pod->entry) {
    co_await remover_.EndMembers(pod->entry);
  }
  if (pod->entry && pod->entry->sandbox) {
    GANTRY_CO_CHECK_OK(co_await proxy_.Stop(pod->entry, deadline));
  }
  if (pod->host && !(pod->entry && pod->entry->sandbox)) {
    // Its backend could not take it up again.
    IgnoreError(pod->host->Signal(SIGKILL), "it has ended");
  }
  if (!pod->host && !pod->life.exit()) {
    // It was never started, or its backend has said it by returning.
    pod->life.Hear(ExitStatus{0, NowNs()}, false);
    co_await HandleExit(pod);
  } else if (!co_await pod->life.exited().WaitFor(parts_.services.loop, LeftUntil(deadline))) {
    co_return Fail(Code::kDeadlineExceeded, "stop sandbox '{}': process {} is still there",
                   pod->id.str(), pod->host_pid.value);
  }
  co_return Status();
}

void SandboxService::OnExited(const PodPtr& pod, ExitStatus exit) {
  switch (pod->life.Hear(exit, false)) {
    case ProcessLife::Heard::kHeld:
      break;
    case ProcessLife::Heard::kAgain:
      if (pod->life.exited().is_set() && pod->host && pod->life.on_record()) {
        parts_.services.processes.Release(pod->host->id());
      }
      break;
    case ProcessLife::Heard::kNew:
      async::Start(HandleExit(pod));
      break;
  }
}

void SandboxService::HearHeld(const PodPtr& pod) {
  if (const auto held = pod->life.Release()) {
    OnExited(pod, *held);
  }
}

async::Task<void> SandboxService::HandleExit(PodPtr pod) {
  if (pod->entry && !pod->life.gone()) {
    // Nothing holds their namespaces any more.
    co_await remover_.EndMembers(pod->entry);
  }
  pod->life.Stopped();
  const Status saved = co_await records_.Save(*pod);
  pod->life.Recorded(saved.has_value());
  if (!saved) {
    log::Log(LevelOfUnwritten(saved.error()), {{"ns", pod->group->ns.str()}, {"id", pod->id.str()}},
             "record the exit: {}", saved.error().message);
  }
  // What is on no record the keeper keeps until the pod is removed.
  if (pod->host_pid && pod->life.on_record()) {
    parts_.services.processes.Release({pod->host_pid.value, pod->start_time});
  }
  records_.Protect(*pod);
  pod->life.Acknowledge();
  LogInfo({{"ns", pod->group->ns.str()}, {"id", pod->id.str()}}, "sandbox exited with {}",
          // NOLINTNEXTLINE(bugprone-unchecked-optional-access): this is about its exit.
          pod->life.exit()->status);
  Tell(*pod, "exited");
}

void SandboxService::Tell(const Pod& pod, std::string_view what) const {
  if (observer_) {
    observer_(
        {what, pod.group->ns, pod.id, pod.pid, pod.life.exit().value_or(ExitStatus{0, NowNs()})});
  }
}

async::Task<Status> SandboxService::Remove(PodPtr pod, Deadline deadline) {
  if (pod->life.state() == State::kRunning) {
    if (const Status ended = co_await End(pod, deadline); !ended) {
      LogWarning({{"ns", pod->group->ns.str()}, {"id", pod->id.str()}}, "{}",
                 ended.error().message);
    }
  }
  // Whoever comes now would get a sandbox of his own.
  pod->life.Deleting();
  if (pod->entry) {
    co_await remover_.EndMembers(pod->entry);
    GANTRY_CO_CHECK_OK(co_await sandboxes_.Close(pod->group->address, pod->entry));
  }
  const PodCgroup cgroups = pod->cgroups;
  const std::string bundle = pod->bundle;
  const auto remove = [&]() -> Status {
    GANTRY_CHECK_OK(cgroups.Remove(LeftUntil(deadline)));
    if (!bundle.empty()) {
      GANTRY_CHECK_OK(RemoveTree(bundle + "/" + link::kMembersFolder));
      for (const std::string& place : {bundle, oci::NameWhileDeleted(bundle)}) {
        GANTRY_TRY([[maybe_unused]] const mount::UnmountReport report, mount::UnmountTree(place));
      }
    }
    return {};
  };
  co_return co_await parts_.services.pool.RunFor(pod->group->account, remove,
                                                 async::Refusable::kNo);
}

async::Task<Status> SandboxService::Discard(PodPtr pod, Deadline deadline) {
  GANTRY_CO_CHECK_OK(co_await Remove(pod, deadline));
  co_await Drop(pod);
  co_return Status();
}

async::Task<void> SandboxService::Drop(PodPtr pod) {
  co_await records_.Remove(*pod);
  if (pod->host_pid && pod->life.exit()) {
    parts_.services.processes.Release({pod->host_pid.value, pod->start_time});
  }
  pod->life.Deleted();
  if (pod->told_of) {
    Tell(*pod, "deleted");
  }
  Leave(*pod);
  records_.Protect(*pod);
}

void SandboxService::InstanceRemoved(const Group& group, uint64_t number) {
  if (const PodPtr pod = pods_.Find(group.address); pod && pod->instance == number) {
    async::Start(FreeRemoved(pod));
  }
}

async::Task<void> SandboxService::FreeRemoved(PodPtr pod) {
  co_await pod->ready.Wait();
  const async::Slot::Hold hold = co_await pod->slot.Acquire();
  if (pod->life.gone()) {
    co_return;
  }
  co_await DiscardAnyway(pod, "free what the keeper has removed");
}

async::Task<void> SandboxService::DiscardAnyway(PodPtr pod, std::string_view why) {
  const Status discarded = co_await Discard(pod, DeadlineIn(parts_.config.timeouts.remove));
  if (!discarded) {
    LogError({{"ns", pod->group->ns.str()}, {"id", pod->id.str()}}, "{}: {}", why,
             discarded.error().message);
    Leave(*pod);
  }
}

async::Task<bool> SandboxService::AnswerDeleteCall(link::DeleteCall call) {
  const PodPtr pod = pods_.FindInstance(call.instance);
  if (!pod) {
    co_return false;
  }
  co_await pod->ready.Wait();
  if (pod->life.gone()) {
    co_return false;
  }
  const async::Slot::Hold hold = co_await pod->slot.Acquire();
  link::DeleteDone done;
  done.tag = call.tag;
  done.pid = pod->pid != 0 ? pod->pid : link::kNoPid;
  if (!pod->life.gone()) {
    const Status removed = co_await Discard(pod, DeadlineIn(parts_.config.timeouts.remove));
    if (!removed) {
      done.code = static_cast<int32_t>(removed.error().code);
      done.message = removed.error().message;
    }
  }
  const ExitStatus exit = pod->life.exit().value_or(ExitStatus{137, NowNs()});
  done.status = exit.status;
  done.exited_at_ns = exit.exited_at_ns;
  parts_.services.link.AnswerDelete(done);
  co_return true;
}

void SandboxService::Leave(Pod& pod) {
  pods_.Leave(pod);
  pod.life.SetGone();
}

}  // namespace gantry::task
