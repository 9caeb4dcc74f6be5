// SPDX-License-Identifier: Apache-2.0
//
// Both kinds, containers and pods, are written, removed and forgotten by the same functions; only
// their plans differ.
#include "core/task/records.h"

#include <optional>
#include <string>
#include <utility>

#include "core/async/worker_pool.h"
#include "core/backend/services.h"
#include "core/keeper_client/host_processes.h"
#include "core/keeper_client/keeper_link.h"
#include "core/link/messages.h"
#include "core/task/container.h"
#include "core/task/pod.h"
#include "core/task/sandboxes.h"

namespace gantry::task {
namespace {

async::Task<Status> WriteRecord(const backend::Services& services, async::AccountPtr account,
                                RecordFile file, RecordVersion version) {
  co_return co_await services.pool.RunFor(std::move(account), file.Writer(std::move(version)),
                                          async::Refusable::kNo);
}

async::Task<void> RemoveRecord(const backend::Services& services, async::AccountPtr account,
                               RecordFile file, std::string bundle) {
  if (bundle.empty()) {
    co_return;  // There has never been one.
  }
  IgnoreError(co_await services.pool.RunFor(std::move(account), file.Remover(std::move(bundle)),
                                            async::Refusable::kNo),
              "containerd removes the bundle, and with it the record");
}

link::Forget Tombstone(uint64_t instance, uint32_t pid, const std::optional<ExitStatus>& exit) {
  const ExitStatus told = exit.value_or(ExitStatus{0, NowNs()});
  link::Forget tombstone;
  tombstone.instance = instance;
  tombstone.pid = pid;
  tombstone.status = told.status;
  tombstone.exited_at_ns = told.exited_at_ns;
  return tombstone;
}

/// With this container its sandbox ends: it is the pod's own, or the only one.
bool EndsWithSandbox(const Container& container) {
  return container.sandbox && !container.sandbox->is_pod &&
         (container.id.str() == container.group->id || container.sandbox->containers <= 1);
}

}  // namespace

async::Task<Status> Records::Save(Container& container, size_t most) {
  return WriteRecord(services_, container.group->account, container.record,
                     container.record.Next(ToRecord(container), most));
}

async::Task<Status> Records::Save(Pod& pod) {
  return WriteRecord(services_, pod.group->account, pod.record, pod.record.Next(ToRecord(pod)));
}

async::Task<void> Records::Remove(const Container& container) {
  return RemoveRecord(services_, container.group->account, container.record, container.bundle);
}

async::Task<void> Records::Remove(const Pod& pod) {
  return RemoveRecord(services_, pod.group->account, pod.record, pod.bundle);
}

void Records::Protect(const Container& container) {
  if (!container.ready.is_set()) {
    return;
  }
  link::Plan plan = ToPlan(container);
  if (EndsWithSandbox(container)) {
    for (const ProcessId& process :
         services_.processes.SpawnedBelow(container.sandbox_prefix + "/")) {
      plan.processes.push_back({process.pid, process.start_time});
    }
  }
  services_.link.Protect(container.instance, std::move(plan));
}

void Records::Protect(const Pod& pod) {
  services_.link.Protect(pod.instance,
                         pod.life.gone() ? link::Plan() : ToPlan(pod, services_.processes));
}

void Records::Unprotect(uint64_t instance) { services_.link.Protect(instance, link::Plan()); }

void Records::Forget(const Container& container) {
  services_.link.Forget(
      Tombstone(container.instance, container.init->pid, container.init->life.exit()));
}

void Records::Forget(const Pod& pod) {
  services_.link.Forget(Tombstone(pod.instance, pod.pid, pod.life.exit()));
}

}  // namespace gantry::task
