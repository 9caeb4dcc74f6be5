// SPDX-License-Identifier: Apache-2.0
//
// How what befalls a container becomes known to containerd: the ends of its processes, and that
// memory ran out.
//
// An end comes from the keeper (a bound host process) or from the backend. Then, in
// this order: a start that is not published yet is waited for; for an init, the starts
// of execs that are under way are cut short, execs' ends go first and a last look is taken whether
// memory ran out; the state goes on record; a client that reads is given the time to read the rest;
// then, in one go, the event is queued, the keeper told that the end is known, and
// Wait answered. That an end of which the keeper does not know is out goes on record last.
#pragma once

#include <memory>

#include <gantry/error.h>
#include <gantry/process.h>

#include "core/async/co.h"
#include "core/task/containers.h"
#include "core/task/contexts.h"

namespace gantry::metrics {
struct Figures;
}

namespace gantry::task {

class BackendProxy;
class Records;
struct Parts;

/// Thread: loop.
class ExitRelay final : public ProcessObserver {
 public:
  /// Owner: all of them outlive it.
  ExitRelay(const Parts& parts, const Containers& containers, Records& records, BackendProxy& proxy,
            metrics::Figures& figures)
      : parts_(parts),
        containers_(containers),
        records_(records),
        proxy_(proxy),
        figures_(figures) {}

  // From the contexts of a container and its processes.
  Status OnBound(TaskProcess& process, keeper_client::WatchedProcessPtr host) override;
  void OnPid(TaskProcess& process, HostPid pid) override;
  void OnExited(TaskProcess& process, ExitStatus exit) override;
  void OnCgroup(Container& container, cgroup::Cgroup cgroup,
                std::unique_ptr<cgroup::OomWatch> oom) override;
  Status OnMakingCgroup(Container& container, cgroup::Cgroup cgroup, std::string scope) override;
  void OnOutOfMemory(Container& container) override;

  /// Its create or start is published: an end that came before goes its way now.
  void StartPublished(TaskProcess& process);
  /// Tells of an end that is on record already, and was perhaps not told.
  void Repeat(ContainerPtr container, TaskProcessPtr process);

 private:
  /// `repeated`: an engine before this one has counted it.
  async::Task<void> HandleExit(ContainerPtr container, TaskProcessPtr process, bool repeated);
  async::Task<void> EndStarts(ContainerPtr container);
  async::Task<void> EndExecsFirst(ContainerPtr container);
  async::Task<void> AwaitReader(TaskProcessPtr process);
  void FinishExit(TaskProcess& process);
  void TellOutOfMemory(Container& container);
  void Count(const Container& container, const TaskProcess& process);

  const Parts& parts_;
  const Containers& containers_;
  Records& records_;
  BackendProxy& proxy_;
  metrics::Figures& figures_;
};

}  // namespace gantry::task
