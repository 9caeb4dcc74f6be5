// SPDX-License-Identifier: Apache-2.0
//
// StartSandbox, and its undoing.
#include <signal.h>

#include <algorithm>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/mount/mount_info.h>

#include "core/async/worker_pool.h"
#include "core/config/config.h"
#include "core/keeper_client/host_processes.h"
#include "core/log/log.h"
#include "core/pod/sandbox_service.h"
#include "core/task/components.h"
#include "core/task/record_writes.h"
#include "core/task/timestamp.h"

namespace gantry::task {
namespace {

constexpr std::chrono::seconds kUndoLimit(30);

}  // namespace

SandboxService::Answer<sandbox_pb::StartSandboxResponse> SandboxService::Start(
    const Call& call, sandbox_pb::StartSandboxRequest request) {
  const Deadline deadline = DeadlineOf(call, parts_.config.timeouts.start);
  GANTRY_CO_TRY(const PodPtr pod, co_await Find(call, request.sandbox_id()));
  const async::Slot::Hold hold = co_await pod->slot.Acquire();
  const bool repeated = call.replay && pod->life.state() == State::kRunning;
  if (!repeated) {
    if (pod->life.state() != State::kCreated) {
      co_return Fail(Code::kFailedPrecondition, "start sandbox '{}': it is {}", pod->id.str(),
                     store::StateName(pod->life.state()));
    }
    pod->life.BeginStart();
    pod->life.Starting();
    pod->created_blob = pod->entry ? pod->entry->blob : std::string();
    if (Status saved = co_await records_.Save(*pod); !saved) {
      pod->life.StartUndone();
      co_return std::unexpected(std::move(saved).error());
    }
    Status started = co_await proxy_.Start(pod->entry, deadline);
    if (started && pod->pid == 0) {
      started = Fail(Code::kInternal, "backend '{}' does not say which process sandbox '{}' is",
                     pod->backend_name, pod->id.str());
    }
    if (!started) {
      co_await UndoStart(pod);
      co_return std::unexpected(std::move(started).error());
    }
    pod->life.Started();
    co_await AddMounts(pod);
    if (Status saved = co_await records_.Save(*pod); !saved) {
      // The next engine would not know that it runs, so it must not.
      co_await StopUnrecorded(pod, deadline);
      co_return std::unexpected(
          std::move(saved).error().Within(Format("start sandbox '{}'", pod->id.str())));
    }
    records_.Protect(*pod);
    LogInfo({{"ns", pod->group->ns.str()}, {"id", pod->id.str()}}, "sandbox started, pid {}",
            pod->pid);
    Tell(*pod, "started");
    HearHeld(pod);
  } else {
    Tell(*pod, "started");
  }
  sandbox_pb::StartSandboxResponse response;
  response.set_pid(pod->pid);
  SetTimestamp(response.mutable_created_at(), pod->created_at_ns);
  co_return response;
}

/// To the mounts that were known before they were made: what else the backend has mounted in the
/// bundle.
async::Task<void> SandboxService::AddMounts(PodPtr pod) {
  const std::string bundle = pod->bundle;
  const Result<std::vector<mount::MountPoint>> there =
      co_await parts_.services.pool.Run([&] { return mount::ListMounts(bundle); });
  if (!there) {
    LogWarning({{"ns", pod->group->ns.str()}, {"id", pod->id.str()}},
               "look for mounts in its bundle: {}", there.error().message);
    co_return;
  }
  for (const mount::MountPoint& mount : *there) {
    if (!std::ranges::contains(pod->mounts, mount.path, &store::MountedRecord::target)) {
      pod->mounts.push_back({mount.type, mount.source, mount.path});
    }
  }
}

/// It has started, and that is on no record.
async::Task<void> SandboxService::StopUnrecorded(PodPtr pod, Deadline deadline) {
  // An end that comes meanwhile, or came, is that of a start which has not been.
  pod->life.UndoingStart();
  if (pod->entry && pod->entry->sandbox) {
    const Status stopped = co_await proxy_.Stop(pod->entry, deadline);
    if (!stopped) {
      LogWarning({{"ns", pod->group->ns.str()}, {"id", pod->id.str()}}, "undo the start: {}",
                 stopped.error().message);
    }
  }
  co_await UndoStart(pod);
}

async::Task<void> SandboxService::UndoStart(PodPtr pod) {
  if (const keeper_client::WatchedProcessPtr host = std::move(pod->host)) {
    const Status ended = co_await parts_.services.pool.Run([&host]() -> Status {
      IgnoreError(host->Signal(SIGKILL), "it has ended");
      GANTRY_TRY([[maybe_unused]] const WaitStatus end, host->Wait(kUndoLimit));
      return {};
    });
    if (!ended) {
      LogWarning({{"ns", pod->group->ns.str()}, {"id", pod->id.str()}}, "undo the start: {}",
                 ended.error().message);
    }
  }
  if (pod->host_pid) {
    parts_.services.processes.Release({pod->host_pid.value, pod->start_time});
  }
  pod->host.reset();
  pod->host_pid = {};
  pod->start_time = 0;
  pod->pid = 0;
  if (pod->entry) {
    pod->entry->blob = pod->created_blob;
  }
  pod->life.StartUndone();
  if (const Status saved = co_await records_.Save(*pod); !saved) {
    log::Log(LevelOfUnwritten(saved.error()), {{"ns", pod->group->ns.str()}, {"id", pod->id.str()}},
             "record that it has not started: {}", saved.error().message);
  }
  records_.Protect(*pod);
}

Status SandboxService::OnBound(const PodPtr& pod, const keeper_client::WatchedProcessPtr& host) {
  if (pod->host && pod->host != host) {
    return Fail(Code::kFailedPrecondition, "bind process {} of sandbox '{}': bound to {} already",
                host->pid().value, pod->id.str(), pod->host->pid().value);
  }
  pod->host = host;
  pod->host_pid = host->pid();
  pod->start_time = host->start_time();
  pod->pid = static_cast<uint32_t>(host->pid().value);
  host->MarkBound(pod.get());
  records_.Protect(*pod);
  host->OnEnd([this, weak = std::weak_ptr(pod), own = host.get()](WaitStatus status) {
    if (const PodPtr ended = weak.lock(); ended && ended->host.get() == own) {
      OnExited(ended, ExitStatus{status.code(), status.exited_at_ns});
    }
  });
  return {};
}

}  // namespace gantry::task
