// SPDX-License-Identifier: Apache-2.0
//
// The Sandbox service: pods without a pause container, as containerd's
// `sandboxer = "shim"` asks for them. The rules are those of the Task service
// (service.h): the socket tells whose pod it is, and an effect is on record
// before it is acknowledged.
//
// containerd's order: CreateSandbox, StartSandbox, WaitSandbox (open for the
// pod's life), the containers by the Task service on the same socket,
// StopSandbox, ShutdownSandbox, and `delete` of the shim.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/pod_config.h>

#include "core/async/co.h"
#include "core/events/sandbox_event.h"
#include "core/pod/pod.h"
#include "core/pod/pod_map.h"
#include "core/pod/pod_records.h"
#include "core/rpc/method_table.h"
#include "core/task/backend_call.h"
#include "core/task/group.h"
#include "proto/containerd/sandbox.pb.h"

namespace gantry::link {
struct DeleteCall;
struct InstanceAdded;
}  // namespace gantry::link

namespace gantry::task {

class BackendCalls;
class BackendProxy;
class Instances;
class CallMeter;
class RecoveryOrder;
class Remover;
class Sandboxes;
struct Components;
struct Parts;

namespace sandbox_pb = containerd::runtime::sandbox::v1;

/// Thread: loop.
class SandboxService {
 public:
  /// Owner: both outlive it. `pods`: empty; what is in it goes with the service, since it needs
  /// what is in `with`.
  SandboxService(Components& with, PodMap& pods);
  SandboxService(const SandboxService&) = delete;
  SandboxService& operator=(const SandboxService&) = delete;
  ~SandboxService();

  /// Puts the methods into `table`.
  Status Register(rpc::MethodTable& table);

  /// Who hears what happens to pods. Once, before the first call.
  void Observe(events::SandboxObserver observer) { observer_ = std::move(observer); }

  /// After a restart of the engine: calls to it wait for `Recover`.
  void Expect(const link::InstanceAdded& instance);
  /// Takes the pod up again. `record`: null where the instance is no pod.
  async::Task<void> Recover(GroupPtr group, link::InstanceAdded instance,
                            const store::Record* record);
  /// The keeper has ended the instance without us.
  void InstanceRemoved(const Group& group, uint64_t number);
  /// containerd has lost the pod: ends it and leaves nothing. False: it is none.
  async::Task<bool> AnswerDeleteCall(link::DeleteCall call);

 private:
  using Call = rpc::CallContext;
  template <class T>
  using Answer = async::Task<Result<T>>;

  Answer<sandbox_pb::CreateSandboxResponse> Create(const Call& call,
                                                   sandbox_pb::CreateSandboxRequest request);
  Answer<sandbox_pb::StartSandboxResponse> Start(const Call& call,
                                                 sandbox_pb::StartSandboxRequest request);
  Answer<sandbox_pb::PlatformResponse> Platform(const Call& call,
                                                sandbox_pb::PlatformRequest request);
  Answer<sandbox_pb::StopSandboxResponse> Stop(const Call& call,
                                               sandbox_pb::StopSandboxRequest request);
  Answer<sandbox_pb::UpdateSandboxResponse> Update(const Call& call,
                                                   sandbox_pb::UpdateSandboxRequest request);
  Answer<sandbox_pb::WaitSandboxResponse> Wait(const Call& call,
                                               sandbox_pb::WaitSandboxRequest request);
  Answer<sandbox_pb::SandboxStatusResponse> GetStatus(const Call& call,
                                                      sandbox_pb::SandboxStatusRequest request);
  Answer<sandbox_pb::PingResponse> Ping(const Call& call, sandbox_pb::PingRequest request);
  Answer<sandbox_pb::ShutdownSandboxResponse> Shutdown(const Call& call,
                                                       sandbox_pb::ShutdownSandboxRequest request);
  Answer<sandbox_pb::SandboxMetricsResponse> Metrics(const Call& call,
                                                     sandbox_pb::SandboxMetricsRequest request);

  /// The pod of the call's socket, taken up again after a restart.
  async::Task<Result<PodPtr>> Find(const Call& call, std::string id);

  // Create (create.cc).
  async::Task<Status> DoCreate(PodPtr pod, sandbox_pb::CreateSandboxRequest request,
                               Deadline deadline);
  async::Task<Status> PrepareCreate(PodPtr pod, const sandbox_pb::CreateSandboxRequest& request);
  async::Task<Result<SandboxEntryPtr>> PrepareEntry(PodPtr pod, std::string blob);

  // After a restart (recovery.cc).
  static void Restore(Pod& pod, const store::Record& record);
  async::Task<Status> RecoverBackend(PodPtr pod, const store::Record& record);
  async::Task<void> AdoptByRecord(PodPtr pod);
  /// Back to created after a Start that failed or was cut short.
  async::Task<void> UndoStart(PodPtr pod);
  async::Task<void> StopUnrecorded(PodPtr pod, Deadline deadline);

  // Ends.
  Status OnBound(const PodPtr& pod, const keeper_client::WatchedProcessPtr& host);
  void OnExited(const PodPtr& pod, ExitStatus exit);
  /// What was under way is done: an end that came meanwhile is handled now.
  void HearHeld(const PodPtr& pod);
  async::Task<void> HandleExit(PodPtr pod);
  /// Ends its containers and it. Again: nothing.
  async::Task<Status> End(PodPtr pod, Deadline deadline);
  /// Removes every trace but the record.
  async::Task<Status> Remove(PodPtr pod, Deadline deadline);
  /// The record goes, and it is not known any more.
  async::Task<void> Drop(PodPtr pod);
  /// Remove and Drop.
  async::Task<Status> Discard(PodPtr pod, Deadline deadline);
  /// The same; what does not go is in the log, and nothing is known of it any more.
  async::Task<void> DiscardAnyway(PodPtr pod, std::string_view why);

  async::Task<Status> UpdateResources(PodPtr pod, PodResources resources, Deadline deadline);
  async::Task<void> AddMounts(PodPtr pod);
  async::Task<void> FreeRemoved(PodPtr pod);
  void Leave(Pod& pod);
  /// To who watches.
  void Tell(const Pod& pod, std::string_view what) const;

  const Parts& parts_;
  BackendCalls& calls_;
  BackendProxy& proxy_;
  Instances& instances_;
  Sandboxes& sandboxes_;
  RecoveryOrder& order_;
  const CallMeter& meter_;
  Remover& remover_;
  PodMap& pods_;
  PodRecords records_;
  events::SandboxObserver observer_;
};

}  // namespace gantry::task
