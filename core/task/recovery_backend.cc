// SPDX-License-Identifier: Apache-2.0
//
// A container after a restart of the engine, continued: as its record has it, and its sandbox and
// itself as their backend takes them up. What comes before is in recovery.cc.
#include <set>
#include <utility>

#include "core/log/log.h"
#include "core/task/backend_call.h"
#include "core/task/requests.h"
#include "core/task/service.h"
#include "core/task/shortage.h"

namespace gantry::task {

void Service::RestoreContainer(Container& container, const store::Record& record) {
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
  container.weight_formula = WeightFormulaOf(record);
  if (const auto blob = record.blobs.find("container"); blob != record.blobs.end()) {
    container.blob = blob->second;
  }
  container.init = NewProcess(container, ExecId());
  Restore(*container.init, record.stdio, record.state, record.init);
  container.context =
      std::make_unique<ContainerContextImpl>(parts_, exits_, container.weak_from_this());
}

/// Its sandbox, where no container before it has it, and itself: mostly by one call.
os::Task<Status> Service::RecoverBackend(ContainerPtr container, Found& found) {
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
    recovered = plugin::GuardedCall(entry.backend_name, [&] {
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
        os::Refusable::kNo);
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
os::Task<void> Service::LookWhetherStarted(ContainerPtr container) {
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

os::Task<Status> Service::RecoverSandbox(ContainerPtr container, const store::Record& record,
                                         std::function<void()> then) {
  if (record.backend.empty()) {
    co_return Fail(Code::kUnavailable, "it has no sandbox");
  }
  if (pods_.Has(container->group->address)) {
    SandboxEntryPtr pod = sandboxes_.Find(container->group->address);
    if (!pod) {
      co_return Fail(Code::kUnavailable, "it has no sandbox");
    }
    JoinMembers(*container, std::move(pod));
    co_return Status();
  }
  const SandboxKind kind = record.sandbox_id.empty() ? SandboxKind::kImplied : SandboxKind::kPaused;
  const auto saved = record.blobs.find("sandbox");
  const std::string blob = saved == record.blobs.end() ? std::string() : saved->second;
  Shortage shortage(parts_.services.loop);
  Result<SandboxEntryPtr> opened = co_await OpenSandbox(container, kind, &blob, then);
  while (!opened) {
    const Status failed = std::unexpected(opened.error());
    if (!co_await shortage.MayPass(failed)) {
      co_return std::unexpected(std::move(opened).error().Within("its sandbox"));
    }
    opened = co_await OpenSandbox(container, kind, &blob, then);
  }
  JoinMembers(*container, std::move(*opened));
  co_return Status();
}

/// Ends what its sandbox has, where nobody has that any more.
void Service::AbandonSandbox(const Container& container) {
  std::set<std::string> used = containers_.PrefixesInUse(container);
  pods_.AddPrefixes(used);
  if (!used.contains(container.sandbox_prefix)) {
    sandboxes_.Abandon(container.sandbox_prefix);
  }
}

}  // namespace gantry::task
