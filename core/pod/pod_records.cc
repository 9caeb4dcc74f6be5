// SPDX-License-Identifier: Apache-2.0
#include "core/pod/pod_records.h"

#include "core/backend/services.h"
#include "core/keeper_client/host_processes.h"
#include "core/keeper_client/keeper_link.h"
#include "core/link/messages.h"
#include "core/pod/pod.h"
#include "core/task/record_writes.h"

namespace gantry::task {

async::Task<Status> PodRecords::Save(Pod& pod) {
  return WriteRecord(services_, pod.group->account, pod.record, pod.record.Next(ToRecord(pod)));
}

async::Task<void> PodRecords::Remove(const Pod& pod) {
  return RemoveRecord(services_, pod.group->account, pod.record, pod.bundle);
}

void PodRecords::Protect(const Pod& pod) {
  services_.link.Protect(
      pod.instance, pod.life.gone() ? link::LastResort() : ToLastResort(pod, services_.processes));
}

void PodRecords::Forget(const Pod& pod) {
  services_.link.Forget(Tombstone(pod.instance, pod.pid, pod.life.exit()));
}

}  // namespace gantry::task
