// SPDX-License-Identifier: Apache-2.0
//
// A container as its record has it, and its sandbox and itself as their backend takes them up,
// mostly by one call.
#include "core/recovery/container_recovery.h"

#include <utility>

#include "core/async/loop.h"
#include "core/backend/context.h"
#include "core/backend/guard.h"
#include "core/config/config.h"
#include "core/io/process_io.h"
#include "core/log/log.h"
#include "core/os/process.h"
#include "core/pod/pod_map.h"
#include "core/recovery/process_recovery.h"
#include "core/task/backend_call.h"
#include "core/task/components.h"
#include "core/task/contexts.h"
#include "core/task/requests.h"
#include "core/task/shortage.h"

namespace gantry::task {

ContainerRecovery::ContainerRecovery(Components& with, const PodMap& pods,
                                     ProcessRecovery& processes)
    : parts_(with.parts),
      calls_(with.calls),
      proxy_(with.proxy),
      exits_(with.exits),
      sandboxes_(with.sandboxes),
      pods_(pods),
      members_(with.members),
      remover_(with.remover),
      factory_(with.factory),
      process_recovery_(processes),
      left_streams_(with.left_streams) {}

void ContainerRecovery::RestoreContainer(Container& container, const store::Record& record) {
  container.record.SetInherited();
  container.handler = record.handler;
  container.backend_name = record.backend;
  container.state_dirs = record.state_dirs;
  container.cleanup = record.cleanup;
  container.sandbox_prefix = record.sandbox_prefix;
  container.options_json = record.options_json;
  container.mounts = record.mounts;
  container.annotations = record.annotations;
  container.checkpoint = record.checkpoint;
  container.created_at_ns = record.created_at_ns;
  container.rootfs = record.rootfs;
  container.netns_path = record.netns_path;
  container.private_pids = record.private_pids;
  container.cgroup_origin = OriginOf(record);
  container.scope = ScopeOf(record);
  container.weight_formula = WeightFormulaOf(record);
  if (const auto blob = record.blobs.find("container"); blob != record.blobs.end()) {
    container.blob = blob->second;
  }
  container.init = factory_.NewProcess(container, ExecId());
  ProcessRecovery::Restore(*container.init, record.stdio, record.state, record.init);
  container.context =
      std::make_unique<ContainerContextImpl>(parts_, exits_, container.weak_from_this());
}

/// Its sandbox, where no container before it has it, and itself: mostly by one call.
async::Task<Status> ContainerRecovery::RecoverBackend(ContainerPtr container, Found& found) {
  const store::Record& record = *found.record;
  const ContainerRequest request = ContainerRequestOf(*container, std::move(found.spec_json));
  const std::string blob = container->blob;
  bool asked = false;
  Result<std::unique_ptr<gantry::Container>> recovered = nullptr;
  // On a worker: `container->sandbox` is there by then.
  const auto recover = [&] {
    asked = true;
    if (found.root_is_gone) {
      recovered = Fail(Code::kNotFound, "its removal was cut short");
      return;
    }
    const SandboxEntry& entry = *container->sandbox;
    recovered = backend::GuardedCall(entry.backend_name, [&] {
      return entry.sandbox->RecoverContainer(request, *container->context, blob);
    });
  };
  GANTRY_CO_CHECK_OK(co_await RecoverSandbox(container, record, recover));
  const auto ask = [&] {
    return calls_.Run(
        BackendCalls::NameOf(*container->sandbox, "recover", container->id.str()),
        DeadlineIn(parts_.config.timeouts.create),
        [&recover]() -> Status {
          recover();
          return {};
        },
        async::Refusable::kNo);
  };
  if (!asked) {
    GANTRY_CO_CHECK_OK(co_await ask());
  }
  Shortage shortage(parts_.services.loop);
  while (!recovered) {
    const Status failed = std::unexpected(recovered.error());
    if (!co_await shortage.MayPass(failed)) {
      break;
    }
    GANTRY_CO_CHECK_OK(co_await ask());
  }
  GANTRY_CO_TRY(container->backend, std::move(recovered));
  co_return Status();
}

/// Its Start may have been answered and its record not have been written: a full disk.
async::Task<void> ContainerRecovery::LookWhetherStarted(ContainerPtr container) {
  const Result<bool> started =
      co_await proxy_.HasStarted(*container, DeadlineIn(parts_.config.timeouts.create));
  if (!started) {
    LogWarning({{"id", container->id.str()}}, "whether it has started: {}; its record says no",
               started.error().message);
  } else if (*started) {
    container->init->life.Started();
    if (!container->checkpoint.empty() && container->init->io) {
      container->init->io->Started();
    }
  }
}

async::Task<Status> ContainerRecovery::RecoverSandbox(ContainerPtr container,
                                                      const store::Record& record,
                                                      std::function<void()> then) {
  if (record.backend.empty()) {
    co_return Fail(Code::kUnavailable, "it has no sandbox");
  }
  if (pods_.Has(container->group->address)) {
    SandboxEntryPtr pod = sandboxes_.Find(container->group->address);
    if (!pod) {
      co_return Fail(Code::kUnavailable, "it has no sandbox");
    }
    members_.JoinMembers(*container, std::move(pod));
    co_return Status();
  }
  const auto saved = record.blobs.find("sandbox");
  const std::string blob = saved == record.blobs.end() ? std::string() : saved->second;
  Shortage shortage(parts_.services.loop);
  Result<SandboxEntryPtr> opened = co_await members_.OpenSandbox(container, &blob, then);
  while (!opened) {
    const Status failed = std::unexpected(opened.error());
    if (!co_await shortage.MayPass(failed)) {
      co_return std::unexpected(std::move(opened).error().Within("its sandbox"));
    }
    opened = co_await members_.OpenSandbox(container, &blob, then);
  }
  members_.JoinMembers(*container, std::move(*opened));
  co_return Status();
}

async::Task<Status> ContainerRecovery::Recover(ContainerPtr container, Found found) {
  store::Record& record = *found.record;
  RestoreContainer(*container, record);
  if (!found.cgroup.empty()) {
    exits_.OnCgroup(*container, std::move(found.cgroup), std::move(found.oom));
  }
  // Ends that are known while the rest is not yet are held back.
  container->init->life.HoldEnds();
  async::Scope parts;
  if (container->checkpoint.empty() || container->init->life.state() != State::kCreated) {
    // Else its Start, which restores it, may have been cut short, and begins again.
    parts.Spawn("process", process_recovery_.BindByRecord(container->init));
  }
  parts.Spawn("streams", process_recovery_.RecoverStreams(container->init));
  co_await parts.Join();
  const Status backend = co_await RecoverBackend(container, found);
  if (record.state == State::kCreating) {
    left_streams_.Put(KeyOf(*container->group, container->id.str()),
                      std::exchange(container->init->left_streams, {}));
    co_await remover_.RollBack(container);
    co_return Fail(Code::kNotFound, "it had not been created");
  }
  if (!backend) {
    // Of one that was being removed, and of whose end is known, nothing is lost.
    const Code code = backend.error().code;
    const bool removed =
        found.root_is_gone ||
        (container->init->life.exit() && (code == Code::kAborted || code == Code::kNotFound));
    log::Log(removed ? log::Level::kInfo : log::Level::kError, {{"id", container->id.str()}},
             "its backend cannot recover it: {}", backend.error().message);
    co_await process_recovery_.AdoptByRecord(
        container->init, found.root_is_gone ? os::kKilledStatus : ProcessRecovery::kUnknownStatus);
    if (!container->sandbox && !container->init->host) {
      members_.AbandonSandbox(*container);
    }
  }
  if (container->backend && container->init->life.state() == State::kCreated) {
    co_await LookWhetherStarted(container);
  }
  for (const store::ExecRecord& exec : record.execs) {
    if (exec.state == State::kDeleting) {
      container->deleted_execs[exec.id] = exec.process;
    } else {
      co_await process_recovery_.RecoverExec(container, exec);
    }
  }
  if (found.frozen) {
    // An engine may have been killed between a pause and its record, and nobody ask again.
    container->init->life.Pause();
  }
  co_await process_recovery_.SettleStarts(container);
  LogInfo({{"ns", container->group->ns.str()}, {"id", container->id.str()}}, "recovered, {}",
          store::StateName(container->init->life.state()));
  co_return Status();
}

}  // namespace gantry::task
