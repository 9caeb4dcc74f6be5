// SPDX-License-Identifier: Apache-2.0
//
// Start: how a container's init or an exec begins to run, and that its start is told before its
// end.
#pragma once

#include <gantry/error.h>

#include "core/async/co.h"
#include "core/task/backend_call.h"
#include "core/task/container.h"
#include "proto/containerd/task/task.pb.h"

namespace gantry::task {

class BackendCalls;
class BackendProxy;
class ExitRelay;
class Records;
class Remover;
struct Parts;

namespace pb = containerd::task;

/// Thread: loop.
class Starter {
 public:
  /// Owner: all of them outlive it.
  Starter(const Parts& parts, Records& records, BackendCalls& calls, BackendProxy& proxy,
          ExitRelay& exits, Remover& remover)
      : parts_(parts),
        records_(records),
        calls_(calls),
        proxy_(proxy),
        exits_(exits),
        remover_(remover) {}

  /// `replay`: an engine before this one may have done it; then its event and its answer again.
  async::Task<Result<pb::StartResponse>> StartInit(ContainerPtr container, Deadline deadline,
                                                   bool replay);
  /// One whose start fails counts as ended.
  async::Task<Result<pb::StartResponse>> StartExec(ContainerPtr container, TaskProcessPtr exec,
                                                   Deadline deadline, bool replay);

 private:
  async::Task<Status> RunExec(ContainerPtr container, TaskProcessPtr exec, Deadline deadline);
  async::Task<void> SettleFailed(ContainerPtr container, TaskProcessPtr exec, bool may_run);

  const Parts& parts_;
  Records& records_;
  BackendCalls& calls_;
  BackendProxy& proxy_;
  ExitRelay& exits_;
  Remover& remover_;
};

}  // namespace gantry::task
