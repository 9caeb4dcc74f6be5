// SPDX-License-Identifier: Apache-2.0
//
// What the core lends to a backend for one container and for one process of
// it: the SDK's `ContainerContext` and `ProcessContext` on top of the task's
// state. They are called on workers and do their work on the loop.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gantry/container.h>
#include <gantry/deadline.h>
#include <gantry/process.h>
#include <gantry/toolkit/sync/mutex.h>

#include "core/cgroup/scope_unit.h"
#include "core/hooks/container_hooks.h"
#include "core/task/container.h"
#include "core/task/container_cgroup.h"
#include "core/task/parts.h"

namespace gantry::task {

/// Of a container's OOM events; an error is logged. Thread: workers.
Result<std::unique_ptr<cgroup::OomWatch>> OpenOomWatch(const ContainerId& id,
                                                       const cgroup::Cgroup& cgroup);

/// What a process's context tells the service. Thread: loop.
class ProcessObserver {
 public:
  virtual ~ProcessObserver() = default;
  /// `process` is bound to a host process from now on.
  virtual Status OnBound(TaskProcess& process, keeper_client::WatchedProcessPtr host) = 0;
  virtual void OnPid(TaskProcess& process, HostPid pid) = 0;
  /// `process` has ended, by its backend's word.
  virtual void OnExited(TaskProcess& process, ExitStatus exit) = 0;
  /// Its cgroups are known. `oom`: null where they tell no OOM events.
  virtual void OnCgroup(Container& container, cgroup::Cgroup cgroup,
                        std::unique_ptr<cgroup::OomWatch> oom) = 0;
  /// They are about to be made, by us, and `scope`, their unit of systemd's (empty: none); empty:
  /// they could not be. To be recorded before they are.
  /// Errors: kFailedPrecondition: they are another container's; kNotFound: it is removed.
  virtual Status OnMakingCgroup(Container& container, cgroup::Cgroup cgroup, std::string scope) = 0;
  /// By its backend's word. What its cgroups have told is not told again.
  virtual void OnOutOfMemory(Container& container) = 0;

 protected:
  ProcessObserver() = default;
};

class ProcessContextImpl final : public ProcessContext {
 public:
  ProcessContextImpl(const Parts& parts, ProcessObserver& observer,
                     const std::weak_ptr<TaskProcess>& process);

  const ContainerId& container() const override { return container_id_; }

  const ExecId& exec() const override { return exec_id_; }

  /// Whose fault it is. Before the backend has this. Thread: loop.
  void SetBackend(std::string backend) { backend_ = std::move(backend); }

  Result<Stdio> TakeStdio() override;
  Status Bind(std::shared_ptr<HostProcess> process) override;
  void SetPid(HostPid pid) override;
  void Exited(ExitStatus status) override;
  Result<UniqueFd> OpenConsole(ConsoleKind kind) override;
  Status AttachConsole(UniqueFd master, ConsoleKind kind) override;
  Status AttachStream(Stream stream, UniqueFd fd, StreamFraming framing) override;
  Status Save(std::string blob) override;

 private:
  Result<std::shared_ptr<io::ProcessIo>> Streams();
  /// The backend does `call` when the process is not there any more.
  std::unexpected<Error> Late(std::string_view call) const;
  std::string Name() const;

  const Parts& parts_;
  ProcessObserver& observer_;
  const std::weak_ptr<TaskProcess> process_;
  const ContainerId container_id_;
  const ExecId exec_id_;
  std::string backend_;
};

class ContainerContextImpl final : public ContainerContext {
 public:
  ContainerContextImpl(const Parts& parts, ProcessObserver& observer,
                       const std::weak_ptr<Container>& container);

  ProcessContext& init() override { return *init_; }

  Status UseCgroupsOf(const HostProcess& process) override;
  Result<std::vector<std::string>> MakeCgroups(CgroupDevices devices) override;
  Result<InsideHooks> BeginHooks() override;
  Status RunHooks(HookPoint point, HostPid pid) override;
  /// Of one that runs: its Start was cut short before the core had run all of its hooks, and has to
  /// come again. Thread: workers. Blocks: on files.
  bool IsStarting();
  /// The container has been created: systemd gets its scope, where `MakeCgroups` has made the
  /// cgroup of one. Again: fine. Errors: those of `cgroup::StartScope`. Blocks: until `by`.
  /// Thread: workers.
  Status StartScope(Deadline by);
  void UseStateDirs(std::vector<std::string> dirs) override;
  void UseCleanup(HostCommand command) override;
  void OutOfMemory() override;
  Status Save(std::string blob) override;

 private:
  /// What is known of its cgroups before they are made.
  struct Known {
    std::string bundle;
    cgroup::Cgroup cgroup;
    CgroupOrigin origin = CgroupOrigin::kForeign;
  };

  Result<Known> AskForCgroup() const;
  /// Those that are being made, with their scope, or none.
  Status RecordCgroup(const cgroup::Cgroup& cgroup, const std::string& scope);
  /// Free, and on record. `scope`: as systemd is to have it, or empty.
  Status Claim(const ContainerCgroup& made, const std::string& scope);
  /// With its limits, and what its scope is to be started with. `devices`: null where they are not
  /// limited.
  Status Make(const ContainerCgroup& made, const cgroup::CgroupResources& limits,
              const std::vector<cgroup::DeviceRule>* devices, bool with_scope);
  Status UseMade(const cgroup::Cgroup& cgroup);
  /// Those of its config.json.
  Result<std::unique_ptr<hooks::ContainerHooks>> ReadHooks();
  /// Of a container that this engine has made, or not.
  Status HaveHooks() GANTRY_REQUIRES(hooks_mutex_);

  const Parts& parts_;
  ProcessObserver& observer_;
  const std::weak_ptr<Container> container_;
  ProcessContext* init_;
  Mutex scope_mutex_;
  /// Nothing: there is none to be started.
  std::optional<cgroup::ScopeRequest> scope_ GANTRY_GUARDED_BY(scope_mutex_);
  /// Guards what follows, and is held while hooks run: a call that is late may overlap the next.
  Mutex hooks_mutex_;
  /// Null: not begun by this engine, nor run.
  std::unique_ptr<hooks::ContainerHooks> hooks_ GANTRY_GUARDED_BY(hooks_mutex_);
};

}  // namespace gantry::task
