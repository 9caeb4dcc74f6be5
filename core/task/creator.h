// SPDX-License-Identifier: Apache-2.0
//
// Create: how a container comes to be, from the bundle to the answer.
#pragma once

#include <memory>
#include <string>

#include <gantry/error.h>

#include "core/async/co.h"
#include "core/rpc/method_table.h"
#include "core/task/containers.h"
#include "proto/containerd/task/task.pb.h"

namespace gantry::task {

class BackendCalls;
class BackendProxy;
class ExitRelay;
class LeftStreams;
class Members;
class Pods;
class ProcessFactory;
class RecoveryOrder;
class Records;
class Remover;
class Sandboxes;
struct Components;
struct Parts;

namespace pb = containerd::task;

/// Thread: loop.
class Creator {
 public:
  /// Owner: both outlive it.
  Creator(Components& with, const Pods& pods);

  /// The call. After an error nothing of the container is left. One that is replayed and was
  /// done: its event and its answer again.
  async::Task<Result<pb::CreateTaskResponse>> Create(const rpc::CallContext& call,
                                                     pb::CreateTaskRequest request);

 private:
  struct Creation;

  async::Task<ContainerPtr> Present(const Group& group, ContainerId id);
  async::Task<Status> DoCreate(std::shared_ptr<Creation> creation);
  async::Task<Status> Announce(Container& container, std::string bundle);
  async::Task<Status> Prepare(Creation& creation);
  async::Task<Status> JoinSandbox(Creation& creation);
  async::Task<Status> MakeContainer(Creation& creation);
  async::Task<Status> StartScope(Creation& creation);

  const Parts& parts_;
  Instances& instances_;
  Containers& containers_;
  Records& records_;
  BackendCalls& calls_;
  BackendProxy& proxy_;
  ExitRelay& exits_;
  const Sandboxes& sandboxes_;
  const Pods& pods_;
  Members& members_;
  Remover& remover_;
  ProcessFactory& factory_;
  const RecoveryOrder& order_;
  LeftStreams& left_streams_;
};

}  // namespace gantry::task
