// SPDX-License-Identifier: Apache-2.0
//
// Taking up one container that an engine before this one left: from its record, with its sandbox
// where no container before it has it, and its processes.
#pragma once

#include <functional>

#include <gantry/error.h>

#include "core/async/co.h"
#include "core/store/record.h"
#include "core/task/containers.h"
#include "core/task/recovery_look.h"

namespace gantry::task {

class BackendCalls;
class BackendProxy;
class ExitRelay;
class LeftStreams;
class Members;
class ProcessFactory;
class ProcessRecovery;
class Remover;
class SandboxService;
class Sandboxes;
struct Parts;

/// Thread: loop.
class ContainerRecovery {
 public:
  /// Owner: all of them outlive it.
  ContainerRecovery(const Parts& parts, BackendCalls& calls, BackendProxy& proxy, ExitRelay& exits,
                    Sandboxes& sandboxes, SandboxService& pods, Members& members, Remover& remover,
                    ProcessFactory& factory, ProcessRecovery& processes, LeftStreams& left_streams)
      : parts_(parts),
        calls_(calls),
        proxy_(proxy),
        exits_(exits),
        sandboxes_(sandboxes),
        pods_(pods),
        members_(members),
        remover_(remover),
        factory_(factory),
        process_recovery_(processes),
        left_streams_(left_streams) {}

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
  SandboxService& pods_;
  Members& members_;
  Remover& remover_;
  ProcessFactory& factory_;
  ProcessRecovery& process_recovery_;
  LeftStreams& left_streams_;
};

}  // namespace gantry::task
