// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/pod/out_of_memory.h"

#include <signal.h>
#include <sys/wait.h>

#include <chrono>

#include <gantry/toolkit/cgroup/counters.h>

namespace gantry::gvisor {
namespace {

/// Its sockets are closed before it is reaped.
constexpr std::chrono::milliseconds kReapLimit{500};

}  // namespace

bool KilledForMemory(const Pod& pod, const std::shared_ptr<HostProcess>& process) {
  const PodRecord record = pod.record();
  if (record.out_of_memory) {
    return true;
  }
  if (cgroup::OomKills(record.place.cgroups) <= record.oom_kills) {
    return false;
  }
  if (!process) {
    return true;
  }
  const auto end = process->Wait(kReapLimit);
  return end && WIFSIGNALED(end->raw) && WTERMSIG(end->raw) == SIGKILL;
}

void KeepWhetherMemoryEndedIt(Pod& pod) {
  const auto sentry = pod.process();
  if (sentry && sentry->Ended() && !pod.record().out_of_memory && KilledForMemory(pod, sentry)) {
    IgnoreError(pod.Change([](PodRecord& record) { record.out_of_memory = true; }),
                "most of its containers have heard it");
  }
}

}  // namespace gantry::gvisor
