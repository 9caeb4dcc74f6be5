// SPDX-License-Identifier: Apache-2.0
//
// The Task service: containerd's 17 methods, served as version 2 and version 3
// from one implementation. Short calls are here: in service.cc, or in a file named after them.
// The rest are classes of their own: how a container comes to be (Creator), how it and its execs
// begin to run (Starter), how ends become known (ExitRelay), how nothing stays (Remover),
// sandboxes and who stands in them (Members). Pods without a pause container are served in
// core/pod, and what a restart left is taken up in core/recovery.
//
// Rules.
// - Whose container it is, is told by the socket that the call came on, not by
//   its metadata.
// - An effect is on record before it is acknowledged: the answer, the event and
//   the keeper's acknowledgement follow the record's write, in one go without a
//   wait in between. So a call that is replayed to the next engine either finds
//   nothing done, or finds it on record and repeats only answer and event.
// - Events of one container go out in the order create, start, exit, delete;
//   an exec's exit before its container's.
#pragma once

#include <memory>
#include <string>

#include <gantry/error.h>
#include <gantry/ids.h>

#include "core/async/co.h"
#include "core/link/messages.h"
#include "core/rpc/method_table.h"
#include "core/task/container.h"
#include "core/task/containers.h"
#include "core/task/creator.h"
#include "core/task/starter.h"
#include "proto/containerd/task/task.pb.h"

namespace gantry::task {

namespace pb = containerd::task;
using rpc::CallContext;

class BackendCalls;
class BackendProxy;
class CallMeter;
class Pods;
class ProcessFactory;
class RecoveryOrder;
class Records;
class Remover;
class ReplayedStarts;
struct Components;
struct Parts;

/// Thread: loop.
class Service final {
 public:
  /// Owner: both outlive it.
  Service(Components& with, const Pods& pods);
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  ~Service() = default;

  /// Puts the methods of both versions into `table`.
  Status Register(rpc::MethodTable& table);

  /// containerd has lost the instance: ends what there is of it, leaves nothing and says so to the
  /// keeper.
  async::Task<void> AnswerDeleteCall(link::DeleteCall call);

 private:
  using Key = InstanceKey;

  // The calls. Create and Start are in service.cc, Delete and Exec in the files of their names, the
  // others in control.cc and query.cc.
  async::Task<Result<pb::CreateTaskResponse>> Create(const CallContext& call,
                                                     pb::CreateTaskRequest request);
  async::Task<Result<pb::StartResponse>> Start(const CallContext& call, pb::StartRequest request);
  async::Task<Result<pb::DeleteResponse>> Delete(const CallContext& call,
                                                 pb::DeleteRequest request);
  async::Task<Result<pb::StateResponse>> GetState(const CallContext& call,
                                                  pb::StateRequest request);
  async::Task<Result<wire::Empty>> Exec(const CallContext& call, pb::ExecProcessRequest request);
  async::Task<Result<pb::WaitResponse>> Wait(const CallContext& call, pb::WaitRequest request);
  async::Task<Result<wire::Empty>> Kill(const CallContext& call, pb::KillRequest request);
  async::Task<Result<pb::PidsResponse>> Pids(const CallContext& call, pb::PidsRequest request);
  async::Task<Result<wire::Empty>> Pause(const CallContext& call, pb::PauseRequest request);
  async::Task<Result<wire::Empty>> Resume(const CallContext& call, pb::ResumeRequest request);
  async::Task<Result<wire::Empty>> ResizePty(const CallContext& call, pb::ResizePtyRequest request);
  async::Task<Result<wire::Empty>> CloseIO(const CallContext& call, pb::CloseIORequest request);
  async::Task<Result<wire::Empty>> Update(const CallContext& call, pb::UpdateTaskRequest request);
  async::Task<Result<wire::Empty>> Checkpoint(const CallContext& call,
                                              pb::CheckpointTaskRequest request);
  async::Task<Result<pb::StatsResponse>> Stats(const CallContext& call, pb::StatsRequest request);
  async::Task<Result<pb::ConnectResponse>> Connect(const CallContext& call,
                                                   pb::ConnectRequest request);
  async::Task<Result<wire::Empty>> Shutdown(const CallContext& call, pb::ShutdownRequest request);

  // Look-ups (service.cc).
  /// The container, taken up again after a restart.
  async::Task<Result<ContainerPtr>> Find(const CallContext& call, std::string id);
  async::Task<Result<TaskProcessPtr>> FindProcess(const CallContext& call, std::string id,
                                                  std::string exec_id);
  void Publish(events::Event event);

  // Execs (exec.cc).
  async::Task<Result<std::string>> ReadExecSpec(const Container& container,
                                                const pb::ExecProcessRequest& request);
  async::Task<void> ForgetOldestExec(ContainerPtr container);
  async::Task<void> FreeForgotten(ContainerPtr container, TaskProcessPtr exec);

  // Deletes (delete.cc).
  async::Task<Result<pb::DeleteResponse>> DeleteInit(ContainerPtr container, Deadline deadline);
  async::Task<Result<pb::DeleteResponse>> DeleteExec(ContainerPtr container, TaskProcessPtr exec,
                                                     Deadline deadline);
  async::Task<Status> CallPauseOrResume(ContainerPtr container, bool pause, Deadline deadline);
  async::Task<Status> SetPaused(ContainerPtr container, bool paused, Deadline deadline);

  // Signals (control.cc).
  async::Task<Status> SignalOne(ContainerPtr container, TaskProcessPtr process, uint32_t signal,
                                Deadline deadline);

  const Parts& parts_;
  Records& records_;
  BackendCalls& calls_;
  BackendProxy& proxy_;
  Instances& instances_;
  RecoveryOrder& order_;
  const CallMeter& meter_;
  Remover& remover_;
  ProcessFactory& factory_;
  ReplayedStarts& replays_;
  Containers& containers_;
  Creator creator_;
  Starter starter_;
};

}  // namespace gantry::task
