// SPDX-License-Identifier: Apache-2.0
//
// What a container's last resort has beyond itself: what of its sandbox ends with it.
#include "core/task/records.h"

#include <utility>

#include "core/backend/services.h"
#include "core/keeper_client/host_processes.h"
#include "core/keeper_client/keeper_link.h"
#include "core/link/messages.h"
#include "core/task/container.h"
#include "core/task/record_writes.h"
#include "core/task/sandboxes.h"

namespace gantry::task {
namespace {

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

async::Task<void> Records::Remove(const Container& container) {
  return RemoveRecord(services_, container.group->account, container.record, container.bundle);
}

void Records::Protect(const Container& container) {
  if (!container.ready.is_set()) {
    return;
  }
  link::LastResort last_resort = ToLastResort(container);
  if (EndsWithSandbox(container)) {
    for (const ProcessId& process :
         services_.processes.SpawnedBelow(container.sandbox_prefix + "/")) {
      last_resort.processes.push_back({process.pid, process.start_time});
    }
  }
  services_.link.Protect(container.instance, std::move(last_resort));
}

void Records::Unprotect(uint64_t instance) { services_.link.Protect(instance, link::LastResort()); }

void Records::Forget(const Container& container) {
  services_.link.Forget(
      Tombstone(container.instance, container.init->pid, container.init->life.exit()));
}

}  // namespace gantry::task
