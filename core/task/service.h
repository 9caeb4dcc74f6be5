// SPDX-License-Identifier: Apache-2.0
//
// The Task service: containerd's 17 methods, served as version 2 and version 3
// from one implementation. The calls are in files named after them; here is
// what they share: which containers there are, and which rules hold for all.
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

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gantry/error.h>
#include <gantry/ids.h>

#include "core/link/messages.h"
#include "core/oci/bundle_spec.h"
#include "core/os/co.h"
#include "core/rpc/method_table.h"
#include "core/task/backend_calls.h"
#include "core/task/backend_proxy.h"
#include "core/task/container.h"
#include "core/task/containers.h"
#include "core/task/exit_relay.h"
#include "core/task/instances.h"
#include "core/task/parts.h"
#include "core/task/records.h"
#include "core/task/recovery_look.h"
#include "core/task/recovery_order.h"
#include "core/task/sandbox_service.h"
#include "core/task/sandboxes.h"
#include "core/task/stdio_host.h"
#include "proto/containerd/task/task.pb.h"

namespace gantry::task {

namespace pb = containerd::task;
using rpc::CallContext;

/// Thread: loop.
class Service final : private SandboxMembers {
 public:
  explicit Service(const Parts& parts);
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  ~Service() override;

  /// Puts the methods of both versions into `table`.
  Status Register(rpc::MethodTable& table);

  /// From the keeper.
  void InstanceAdded(link::InstanceAdded instance);
  void InstanceRemoved(link::InstanceRemoved gone);
  /// Everything from before a restart has been told: takes it all up again.
  /// `stored`: the names in the descriptor store.
  void SnapshotEnd(std::vector<std::string> stored);
  void DeleteCall(const link::DeleteCall& call);

  /// For gantryctl.
  const task::Containers& containers() const { return containers_; }

  std::vector<PodPtr> Pods() const { return pods_.Pods(); }

  const std::map<uint64_t, link::InstanceAdded>& instances() const { return instances_.all(); }

  /// Of the sandbox whose calls come on that socket; null: there is none.
  os::AccountPtr AccountAt(const std::string& address) const {
    return instances_.AccountAt(address);
  }

  const BackendCalls& backend_calls() const { return calls_; }

 private:
  using Key = InstanceKey;

  // The calls. Each in the file of its name or, where short, in control.cc and query.cc.
  os::Task<Result<pb::CreateTaskResponse>> Create(const CallContext& call,
                                                  pb::CreateTaskRequest request);
  os::Task<Result<pb::StartResponse>> Start(const CallContext& call, pb::StartRequest request);
  os::Task<Result<pb::DeleteResponse>> Delete(const CallContext& call, pb::DeleteRequest request);
  os::Task<Result<pb::StateResponse>> GetState(const CallContext& call, pb::StateRequest request);
  os::Task<Result<wire::Empty>> Exec(const CallContext& call, pb::ExecProcessRequest request);
  os::Task<Result<pb::WaitResponse>> Wait(const CallContext& call, pb::WaitRequest request);
  os::Task<Result<wire::Empty>> Kill(const CallContext& call, pb::KillRequest request);
  os::Task<Result<pb::PidsResponse>> Pids(const CallContext& call, pb::PidsRequest request);
  os::Task<Result<wire::Empty>> Pause(const CallContext& call, pb::PauseRequest request);
  os::Task<Result<wire::Empty>> Resume(const CallContext& call, pb::ResumeRequest request);
  os::Task<Result<wire::Empty>> ResizePty(const CallContext& call, pb::ResizePtyRequest request);
  os::Task<Result<wire::Empty>> CloseIO(const CallContext& call, pb::CloseIORequest request);
  os::Task<Result<wire::Empty>> Update(const CallContext& call, pb::UpdateTaskRequest request);
  os::Task<Result<wire::Empty>> Checkpoint(const CallContext& call,
                                           pb::CheckpointTaskRequest request);
  os::Task<Result<pb::StatsResponse>> Stats(const CallContext& call, pb::StatsRequest request);
  os::Task<Result<pb::ConnectResponse>> Connect(const CallContext& call,
                                                pb::ConnectRequest request);
  os::Task<Result<wire::Empty>> Shutdown(const CallContext& call, pb::ShutdownRequest request);

  // Look-ups (service.cc).
  /// The container, taken up again after a restart.
  os::Task<Result<ContainerPtr>> Find(const CallContext& call, std::string id);
  os::Task<Result<TaskProcessPtr>> FindProcess(const CallContext& call, std::string id,
                                               std::string exec_id);
  ContainerPtr Enter(const ContainerId& id, GroupPtr group);
  TaskProcessPtr NewProcess(Container& container, ExecId id);
  void Leave(Container& container);
  void SetGone(TaskProcess& process);

  void Publish(events::Event event);

  // Create (create.cc).
  struct Creation;
  os::Task<ContainerPtr> Present(const Group& group, ContainerId id);
  os::Task<Status> DoCreate(std::shared_ptr<Creation> creation);
  os::Task<Status> Prepare(Creation& creation);
  os::Task<Status> OpenStreams(TaskProcessPtr process, io::GivenUp given_up = nullptr);
  os::Task<Status> JoinSandbox(Creation& creation);
  os::Task<Status> MakeContainer(Creation& creation);
  os::Task<void> RollBack(ContainerPtr container);

  // The sandboxes that they stand in (members.cc).
  std::string ChooseHandler(const Container& container, const std::string& asked,
                            const std::string& asked_of_group) const;
  static Status CheckHandler(const Container& container, const SandboxEntry& sandbox);
  /// The place for one, before anything of it is made. `blob`: as in `OpenSandbox`.
  os::Task<Result<SandboxEntryPtr>> PlanSandbox(ContainerPtr container, const std::string* blob);
  /// `blob`: of one that is taken up again; null: it is made. `then`: called on the worker that has
  /// opened it; not where it stands already.
  os::Task<Result<SandboxEntryPtr>> OpenSandbox(ContainerPtr container, SandboxKind kind,
                                                const std::string* blob,
                                                std::function<void()> then = {});
  /// Names the container in its pod's bundle.
  os::Task<Status> Enlist(const Container& container);
  void JoinMembers(Container& container, SandboxEntryPtr entry);
  void ProtectMembers(const SandboxEntry& entry);
  os::Task<void> LeaveSandbox(Container& container);
  os::Task<void> HandOverBlob(const Container& from, SandboxEntry& entry);
  os::Task<void> EndMembers(SandboxEntryPtr entry) override;
  os::Task<void> EndMember(ContainerPtr member);

  // Execs (exec.cc).
  os::Task<Result<std::string>> ReadExecSpec(const Container& container,
                                             const pb::ExecProcessRequest& request);
  os::Task<void> ForgetOldestExec(ContainerPtr container);
  os::Task<void> FreeForgotten(ContainerPtr container, TaskProcessPtr exec);

  // Starts (start.cc).
  class ReplayMark;
  os::Task<Result<pb::StartResponse>> StartInit(ContainerPtr container, Deadline deadline,
                                                bool replay);
  os::Task<Result<pb::StartResponse>> StartExec(ContainerPtr container, TaskProcessPtr exec,
                                                Deadline deadline, bool replay);
  os::Task<Status> RunExec(ContainerPtr container, TaskProcessPtr exec, Deadline deadline);

  // Deletes (delete.cc).
  os::Task<Result<pb::DeleteResponse>> DeleteInit(ContainerPtr container, Deadline deadline);
  os::Task<Result<pb::DeleteResponse>> DeleteExec(ContainerPtr container, TaskProcessPtr exec,
                                                  Deadline deadline);
  os::Task<Status> CallPauseOrResume(ContainerPtr container, bool pause, Deadline deadline);
  os::Task<Status> SetPaused(ContainerPtr container, bool paused, Deadline deadline);
  /// Removes every trace outside the bundle. Again: allowed. `deadline`: the
  /// backend's; without, the configuration's from now on.
  os::Task<Status> Remove(ContainerPtr container, std::optional<Deadline> deadline = {});
  os::Task<Status> RemoveMadeCgroup(Container& container, Deadline deadline);
  os::Task<void> AwaitPublishedExit(TaskProcess& init);
  os::Task<void> CloseStreams(TaskProcessPtr process);
  os::Task<void> AnswerDeleteCall(link::DeleteCall call);
  os::Task<void> FreeRemoved(ContainerPtr container, bool with_group);

  // Signals (control.cc).
  static os::Task<void> AwaitExecStart(TaskProcessPtr process);
  os::Task<Status> SignalOne(ContainerPtr container, TaskProcessPtr process, uint32_t signal,
                             Deadline deadline);

  // Signals of foreign consoles (console_signals.cc).
  void OnConsoleSignals(ContainerPtr container, TaskProcessPtr process);
  os::Task<void> SendConsoleSignals(ContainerPtr container, TaskProcessPtr process);
  os::Task<void> SendConsoleSignal(ContainerPtr container, TaskProcessPtr process, uint32_t signal);

  // After a restart (recovery.cc).
  void DropOrphans();
  void DropOrphanedSandboxes();
  void AbandonSandbox(const Container& container);
  using Groups = std::map<std::string, std::vector<ContainerPtr>>;
  using Addresses = std::vector<std::string>;

  /// It or a pod of its name, and what there is of it.
  struct ToRecover {
    ContainerPtr container;
    os::OneShot<Found> found;
  };

  os::Task<void> RecoverAll(Groups by_group, Addresses suspects);
  os::Task<void> LoadWarm();
  os::Task<void> RecoverInTurn(Groups& by_group, os::Scope& groups);
  /// Begins with these. What is to be awaited: each one's end.
  std::vector<os::OneShot<void>> BeginRecovery(const Addresses& next, Groups& by_group,
                                               os::Scope& groups);
  os::Task<void> RecoverGroup(std::string address, std::vector<ToRecover> group);
  /// After a restart: returns when what was in the group before is taken up again.
  os::Task<void> AwaitRecovery(std::string address) const;
  os::Task<void> RecoverInstance(ToRecover one);
  os::Task<Status> Recover(ContainerPtr container, Found found);
  void RestoreContainer(Container& container, const store::Record& record);
  os::Task<Status> RecoverBackend(ContainerPtr container, Found& found);
  os::Task<Status> RecoverSandbox(ContainerPtr container, const store::Record& record,
                                  std::function<void()> then);

  os::Task<void> LookWhetherStarted(ContainerPtr container);

  // Its processes (recovery_processes.cc).
  /// Of one whose end nobody saw.
  static constexpr uint32_t kUnknownStatus = 255;
  static void Restore(TaskProcess& process, const store::StdioPaths& stdio, State state,
                      const store::ProcessRecord& record);
  os::Task<void> RecoverStreams(TaskProcessPtr process);
  os::Task<void> RecoverExec(ContainerPtr container, const store::ExecRecord& saved);
  os::Task<Status> RecoverExecBackend(ContainerPtr container, TaskProcessPtr exec);
  os::Task<void> BindByRecord(TaskProcessPtr process);
  os::Task<void> AdoptByRecord(TaskProcessPtr process, uint32_t status);
  os::Task<void> AwaitReplays();
  os::Task<void> SettleStarts(ContainerPtr container);
  void SettleStart(const ContainerPtr& container, const TaskProcessPtr& process);
  void RepeatExit(const ContainerPtr& container, const TaskProcessPtr& process);
  /// A Start of it is replayed and waits for the recovery.
  bool StartComesAgain(const TaskProcess& process) const;

  const Parts parts_;
  Records records_;
  BackendCalls calls_;
  BackendProxy proxy_;
  ExitRelay exits_;
  Instances instances_;
  Sandboxes sandboxes_;
  RecoveryOrder order_;
  SandboxService pods_;
  Containers containers_;
  /// `left_streams` of containers whose Create an engine's end interrupted, for
  /// the Create that is replayed.
  std::map<Key, std::vector<std::string>> left_streams_;
  /// Groups, by address, that are being taken up again.
  std::map<std::string, os::OneShot<void>> recovering_;
  /// Of some container there is no telling which processes are its own: its record could not be
  /// read.
  bool left_out_ = false;
  /// The same of a whole group, of which no engine is to read anything: no telling which
  /// sandboxes are its own, either.
  bool group_left_out_ = false;
  /// Set when every request that is replayed has come.
  os::OneShot<void> replayed_;
  /// Starts that came again, by container and exec id, as long as they run.
  std::multiset<std::pair<Key, std::string>> replayed_starts_;
};

}  // namespace gantry::task
