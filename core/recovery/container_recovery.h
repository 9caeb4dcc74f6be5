// SPDX-License-Identifier: Apache-2.0
//
// Taking up one container that an engine before this one left: from its record, with its sandbox
// where no container before it has it, and its processes.
#pragma once

#include <functional>

#include <gantry/error.h>

#include "core/async/co.h"
#include "core/recovery/left_bundles.h"
#include "core/store/record.h"
#include "core/task/containers.h"

namespace gantry::task {

class BackendCalls;
class BackendProxy;
class ExitRelay;
class LeftStreams;
class Members;
class PodMap;
class ProcessFactory;
class ProcessRecovery;
class Remover;
class Sandboxes;
struct Components;
struct Parts;

/// Thread: loop.
class ContainerRecovery {
 public:
  /// Owner: all of them outlive it.
  ContainerRecovery(Components& with, const PodMap& pods, ProcessRecovery& processes);

  /// Errors: kNotFound: it had not been created, and nothing of it is left. One whose backend
  /// cannot take it up is taken up without.
  async::Task<Status> Recover(ContainerPtr container, Found found);

 private:
  void RestoreContainer(Container& container, const store::Record& record);
  async::Task<Status> RecoverBackend(ContainerPtr container, Found& found);
  async::Task<Status> RecoverSandbox(ContainerPtr container, const store::Record& record,
                                     std::function<void()> then);
  async::Task<void> LookWhetherStarted(ContainerPtr container);

  const Parts& parts_;
  BackendCalls& calls_;
  BackendProxy& proxy_;
  ExitRelay& exits_;
  Sandboxes& sandboxes_;
  const PodMap& pods_;
  Members& members_;
  Remover& remover_;
  ProcessFactory& factory_;
  ProcessRecovery& process_recovery_;
  LeftStreams& left_streams_;
};

}  // namespace gantry::task
