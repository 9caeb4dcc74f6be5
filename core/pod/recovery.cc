// SPDX-License-Identifier: Apache-2.0
//
// A pod after a restart of the engine: taken up from its record.
#include <optional>
#include <utility>

#include <gantry/pod_config.h>
#include <gantry/toolkit/cgroup/cgroup.h>

#include "core/async/loop.h"
#include "core/async/worker_pool.h"
#include "core/backend/guard.h"
#include "core/config/config.h"
#include "core/keeper_client/host_processes.h"
#include "core/link/messages.h"
#include "core/log/log.h"
#include "core/pod/sandbox_service.h"
#include "core/task/components.h"
#include "core/task/container.h"
#include "core/task/requests.h"
#include "core/task/shortage.h"

namespace gantry::task {

void SandboxService::Expect(const link::InstanceAdded& instance) {
  const Result<GroupPtr> group = instances_.GroupAt(instance.address);
  Result<SandboxId> id = SandboxId::Parse(instance.announce.id);
  if (group && id && id->str() == (*group)->id) {
    const auto pod = std::make_shared<Pod>(std::move(*id), *group);
    pod->instance = instance.number;
    pod->bundle = instance.announce.bundle;
    pods_.Enter(pod);
  }
}

async::Task<void> SandboxService::Recover(GroupPtr group, link::InstanceAdded instance,
                                          const store::Record* record) {
  const PodPtr pod = pods_.Find(group->address);
  if (!pod || pod->instance != instance.number) {
    co_return;
  }
  if (record == nullptr) {
    Leave(*pod);
    pod->ready.Set();
    co_return;
  }
  Restore(*pod, *record);
  Status recovered;
  Shortage shortage(parts_.services.loop);
  do {
    recovered = co_await RecoverBackend(pod, *record);
  } while (co_await shortage.MayPass(recovered));
  if (!recovered) {
    LogError({{"ns", group->ns.str()}, {"id", pod->id.str()}}, "its backend cannot recover it: {}",
             recovered.error().message);
  }
  if (record->state == State::kCreating) {
    // The CreateSandbox that is replayed begins anew.
    co_await DiscardAnyway(pod, "undo the creation");
  } else if (!recovered) {
    co_await AdoptByRecord(pod);
  }
  if (pod->life.state() == State::kStarting) {
    // The StartSandbox that is replayed begins anew.
    co_await UndoStart(pod);
  }
  if (!pod->life.gone()) {
    records_.Protect(*pod);
    LogInfo({{"ns", group->ns.str()}, {"id", pod->id.str()}}, "sandbox recovered, {}",
            store::StateName(pod->life.state()));
  }
  pod->ready.Set();
}

void SandboxService::Restore(Pod& pod, const store::Record& record) {
  pod.record.SetInherited();
  pod.handler = record.handler;
  pod.backend_name = record.backend;
  pod.options_json = record.options_json;
  pod.netns_path = record.netns_path;
  pod.annotations = record.annotations;
  pod.mounts = record.mounts;
  pod.created_at_ns = record.created_at_ns;
  pod.config = record.pod_config;
  pod.prefix = record.sandbox_prefix;
  if (const auto created = record.blobs.find(std::string(kCreatedBlob));
      created != record.blobs.end()) {
    pod.created_blob = created->second;
  }
  pod.pid = static_cast<uint32_t>(record.init.shown_pid.value);
  pod.host_pid = record.init.pid;
  pod.start_time = record.init.start_time;
  std::optional<ExitStatus> exit;
  if (record.init.exited) {
    exit = ExitStatus{record.init.exit_status, record.init.exited_at_ns};
  }
  pod.told_of = record.state != State::kCreating;
  pod.life.Restore(record.state, exit, false);
  if (exit) {
    pod.life.Acknowledge();
  }
  if (record.state == State::kStarting) {
    // Its end is that of a start which is undone.
    pod.life.HoldEnds();
  }
}

async::Task<Status> SandboxService::RecoverBackend(PodPtr pod, const store::Record& record) {
  const bool made = record.blobs.contains(std::string(kMadeCgroup));
  GANTRY_CO_TRY(pod->cgroups, co_await parts_.services.pool.Run([&]() -> Result<PodCgroup> {
    GANTRY_TRY(const PodConfig config, ParsePodConfig(pod->config));
    GANTRY_TRY(PodCgroup cgroups, PodCgroup::Find(parts_.services.cgroups, config, pod->id.str()));
    cgroups.made = made;
    return cgroups;
  }));
  const auto saved = record.blobs.find("sandbox");
  const std::string blob = saved == record.blobs.end() ? std::string() : saved->second;
  GANTRY_CO_TRY(const SandboxEntryPtr entry, co_await PrepareEntry(pod, blob));
  pod->entry = entry;
  const SandboxRequest wanted = SandboxRequestOf(*pod);
  GANTRY_CO_CHECK_OK(
      co_await proxy_.Recover(entry, wanted, blob, DeadlineIn(parts_.config.timeouts.create)));
  sandboxes_.Enter(pod->group->address, entry);
  co_return Status();
}

/// What it was is known from the record alone: its process's end is told, too.
async::Task<void> SandboxService::AdoptByRecord(PodPtr pod) {
  if (!pod->host_pid || pod->life.exit()) {
    co_return;
  }
  auto host = co_await parts_.services.processes.Adopt(pod->host_pid, pod->start_time);
  if (host) {
    IgnoreError(OnBound(pod, *host), "nothing else was bound");
  } else {
    OnExited(pod, ExitStatus{255, NowNs()});
  }
}

}  // namespace gantry::task
