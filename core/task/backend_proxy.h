// SPDX-License-Identifier: Apache-2.0
//
// The interface of backends as the loop calls it: one coroutine for each of its calls. Each runs
// on one of the backend's workers (`BackendCalls`), which is told its deadline; what it works on
// stays alive for as long; an exception is an error; what a container's backend leaves out is
// done in the container's cgroups (`CgroupDefaults`) or through its host process.
//
// Errors of all: kUnavailable: the backend could not take the object up again after a restart of
// the engine, or its sandbox has too many calls that hang; kDeadlineExceeded; and the backend's.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include <gantry/container.h>
#include <gantry/error.h>
#include <gantry/sandbox.h>

#include "core/async/co.h"
#include "core/task/backend_call.h"
#include "core/task/backend_calls.h"
#include "core/task/cgroup_defaults.h"
#include "core/task/container.h"
#include "core/task/sandboxes.h"

namespace gantry::task {

/// Thread: loop.
class BackendProxy {
 public:
  explicit BackendProxy(BackendCalls& calls) : calls_(calls) {}

  // Of a sandbox.
  async::Task<Status> Create(SandboxEntryPtr entry, const SandboxRequest& request,
                             Deadline deadline);
  /// `blob`: what it had saved.
  async::Task<Status> Recover(SandboxEntryPtr entry, const SandboxRequest& request,
                              std::string blob, Deadline deadline);
  async::Task<Status> Start(SandboxEntryPtr entry, Deadline deadline);
  async::Task<Status> Stop(SandboxEntryPtr entry, Deadline deadline);
  async::Task<Status> Update(SandboxEntryPtr entry, PodResources resources, Deadline deadline);
  async::Task<Result<SandboxPlatform>> Platform(SandboxEntryPtr entry, Deadline deadline);
  async::Task<Result<SandboxInfo>> Info(SandboxEntryPtr entry, Deadline deadline);
  async::Task<Result<ContainerMetrics>> Metrics(SandboxEntryPtr entry, Deadline deadline);
  /// Then it and its context are gone, whatever the answer. Again: allowed.
  async::Task<Status> Shutdown(SandboxEntryPtr entry, Deadline deadline);

  // Of a container. It stays alive as long as the task.
  async::Task<Result<std::unique_ptr<gantry::Container>>> Create(const Container& container,
                                                                 const ContainerRequest& request,
                                                                 Deadline deadline);
  async::Task<Result<bool>> HasStarted(const Container& container, Deadline deadline);
  async::Task<Status> KillAll(const Container& container, uint32_t signal,
                              std::chrono::milliseconds limit);
  async::Task<Status> Pause(const Container& container, std::chrono::milliseconds limit,
                            Deadline deadline);
  async::Task<Status> Resume(const Container& container, std::chrono::milliseconds limit,
                             Deadline deadline);
  /// `json`: OCI LinuxResources.
  async::Task<Status> Update(const Container& container, const std::string& json,
                             CgroupUpdate& update, Deadline deadline);
  async::Task<Result<stats::TypedMessage>> Stats(const Container& container,
                                                 cgroup::CgroupMode node, Deadline deadline);
  async::Task<Result<std::vector<ProcessInfo>>> Processes(const Container& container,
                                                          Deadline deadline);
  /// Makes the folder. Takes as long as it takes.
  async::Task<Status> Checkpoint(const Container& container, const CheckpointRequest& request);
  async::Task<Status> Delete(const Container& container, Deadline deadline);
  /// What it spawns ends with `exec`'s start (`TaskProcess::CutStartShort`).
  async::Task<Result<std::unique_ptr<Process>>> Exec(const Container& container,
                                                     const TaskProcess& exec,
                                                     const ExecRequest& request, Deadline deadline);
  async::Task<Result<std::unique_ptr<Process>>> RecoverExec(const Container& container,
                                                            const TaskProcess& exec,
                                                            const ExecRequest& request,
                                                            Deadline deadline);

  // Of an init or an exec; both stay alive as long as the task.
  async::Task<Status> Start(const Container& container, const TaskProcess& process,
                            Deadline deadline);
  /// Through its host process where the backend leaves it out. Errors: kFailedPrecondition: there
  /// is neither; kNotFound: it has ended.
  async::Task<Status> Kill(const Container& container, const TaskProcess& process, uint32_t signal,
                           Deadline deadline);
  async::Task<Status> ConsoleSignal(const Container& container, const TaskProcess& process,
                                    uint32_t signal, Deadline deadline);
  async::Task<Status> Resize(const Container& container, const TaskProcess& process,
                             ConsoleSize size, Deadline deadline);
  async::Task<Status> CloseStdin(const Container& container, const TaskProcess& process,
                                 Deadline deadline);
  /// Of an exec. One that never came into being: nothing.
  async::Task<Status> Delete(const Container& container, const TaskProcess& exec,
                             Deadline deadline);
  /// Frees a backend's objects, which is its business, and so done by a worker.
  async::Task<void> Free(const Container& container, std::vector<std::shared_ptr<Process>> objects,
                         Deadline deadline);

 private:
  template <class F>
  async::Task<std::invoke_result_t<F&, Sandbox&>> OnSandbox(std::string_view verb,
                                                            SandboxEntryPtr entry,
                                                            Deadline deadline, F function);

  BackendCalls& calls_;
};

}  // namespace gantry::task
