// SPDX-License-Identifier: Apache-2.0
//
// Taking up the processes of a container that an engine before this one left:
// streams, execs, and the events that it may not have published.
//
// What a process's start has published is not on record. So ends are held back
// until it is known whether the Start comes again: then its event goes first.
#pragma once

#include <cstdint>

#include <gantry/error.h>

#include "core/async/co.h"
#include "core/store/record.h"
#include "core/task/container.h"

namespace gantry::task {

class BackendProxy;
class ExitRelay;
class ProcessFactory;
class ReplayedStarts;
class Sandboxes;
struct Components;
struct Parts;

/// Thread: loop.
class ProcessRecovery {
 public:
  /// Of one whose end nobody saw.
  static constexpr uint32_t kUnknownStatus = 255;

  /// Owner: `with` outlives it.
  explicit ProcessRecovery(Components& with);

  /// As the record has it.
  static void Restore(TaskProcess& process, const store::StdioPaths& stdio, State state,
                      const store::ProcessRecord& record);
  async::Task<void> RecoverStreams(TaskProcessPtr process);
  async::Task<void> RecoverExec(ContainerPtr container, const store::ExecRecord& saved);
  async::Task<void> BindByRecord(TaskProcessPtr process);
  async::Task<void> AdoptByRecord(TaskProcessPtr process, uint32_t status);
  async::Task<void> SettleStarts(ContainerPtr container);

 private:
  async::Task<Status> RecoverExecBackend(ContainerPtr container, TaskProcessPtr exec);
  void SettleStart(const ContainerPtr& container, const TaskProcessPtr& process);
  void RepeatExit(const ContainerPtr& container, const TaskProcessPtr& process);

  const Parts& parts_;
  Sandboxes& sandboxes_;
  BackendProxy& proxy_;
  ExitRelay& exits_;
  ProcessFactory& factory_;
  ReplayedStarts& replays_;
};

}  // namespace gantry::task
