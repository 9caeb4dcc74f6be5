// SPDX-License-Identifier: Apache-2.0
//
// Signals, ends and what only asks are short calls: they have a worker of their own for each
// sandbox, and so do not wait behind calls that hang.
#include "core/task/backend_proxy.h"

#include <csignal>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <gantry/backend.h>
#include <gantry/toolkit/cgroup/cgroup.h>

#include "core/backend/context.h"
#include "core/backend/guard.h"
#include "core/keeper_client/host_processes.h"
#include "core/log/log.h"
#include "core/os/fs.h"
#include "core/task/contexts.h"
#include "core/task/sandboxes.h"

namespace gantry::task {

using async::CallKind;
using async::Refusable;

template <class F>
async::Task<std::invoke_result_t<F&, Sandbox&>> BackendProxy::OnSandbox(std::string_view verb,
                                                                        SandboxEntryPtr entry,
                                                                        Deadline deadline,
                                                                        F function) {
  const std::shared_ptr<Sandbox> sandbox = entry ? entry->sandbox : nullptr;
  if (!sandbox) {
    co_return Fail(Code::kUnavailable, "its backend is not there: unavailable");
  }
  co_return co_await calls_.Run(BackendCalls::NameOf(*entry, verb, entry->id.str()), deadline,
                                [&]() -> std::invoke_result_t<F&, Sandbox&> {
                                  const backend::CallDeadline limit(deadline);
                                  return backend::GuardedCall(entry->backend_name,
                                                              [&] { return function(*sandbox); });
                                });
}

async::Task<Status> BackendProxy::Create(SandboxEntryPtr entry, const SandboxRequest& request,
                                         Deadline deadline) {
  co_return co_await calls_.Run(
      BackendCalls::NameOf(*entry, "create sandbox", entry->id.str()), deadline, [&]() -> Status {
        const backend::CallDeadline limit(deadline);
        GANTRY_TRY(entry->sandbox, backend::GuardedCall(entry->backend_name, [&] {
                     return entry->backend->CreateSandbox(request, *entry->context);
                   }));
        return {};
      });
}

async::Task<Status> BackendProxy::Recover(SandboxEntryPtr entry, const SandboxRequest& request,
                                          std::string blob, Deadline deadline) {
  co_return co_await calls_.Run(
      BackendCalls::NameOf(*entry, "recover sandbox", entry->id.str()), deadline, [&]() -> Status {
        GANTRY_TRY(entry->sandbox, backend::GuardedCall(entry->backend_name, [&] {
                     return entry->backend->RecoverSandbox(request, *entry->context, blob);
                   }));
        return {};
      });
}

async::Task<Status> BackendProxy::Start(SandboxEntryPtr entry, Deadline deadline) {
  co_return co_await OnSandbox("start", std::move(entry), deadline,
                               [](Sandbox& sandbox) { return sandbox.Start(); });
}

async::Task<Status> BackendProxy::Stop(SandboxEntryPtr entry, Deadline deadline) {
  co_return co_await OnSandbox("stop", std::move(entry), deadline, [deadline](Sandbox& sandbox) {
    return sandbox.Stop(LeftUntil(deadline));
  });
}

async::Task<Status> BackendProxy::Update(SandboxEntryPtr entry, PodResources resources,
                                         Deadline deadline) {
  co_return co_await OnSandbox("update", std::move(entry), deadline,
                               [&](Sandbox& sandbox) { return sandbox.Update(resources); });
}

async::Task<Result<SandboxPlatform>> BackendProxy::Platform(SandboxEntryPtr entry,
                                                            Deadline deadline) {
  co_return co_await OnSandbox(
      "ask the platform of", std::move(entry), deadline,
      [](Sandbox& sandbox) -> Result<SandboxPlatform> { return sandbox.Platform(); });
}

async::Task<Result<SandboxInfo>> BackendProxy::Info(SandboxEntryPtr entry, Deadline deadline) {
  co_return co_await OnSandbox("ask about", std::move(entry), deadline,
                               [](Sandbox& sandbox) { return sandbox.Info(); });
}

async::Task<Result<ContainerMetrics>> BackendProxy::Metrics(SandboxEntryPtr entry,
                                                            Deadline deadline) {
  co_return co_await OnSandbox("measure", std::move(entry), deadline,
                               [](Sandbox& sandbox) { return sandbox.Metrics(); });
}

async::Task<Status> BackendProxy::Shutdown(SandboxEntryPtr entry, Deadline deadline) {
  co_return co_await calls_.Run(
      BackendCalls::NameOf(*entry, "shut down", entry->id.str()), deadline,
      [&]() -> Status {
        const backend::CallDeadline limit(deadline);
        Status status;
        if (entry->sandbox) {
          status =
              backend::GuardedCall(entry->backend_name, [&] { return entry->sandbox->Shutdown(); });
        }
        entry->sandbox.reset();
        entry->context->End();
        return status;
      },
      Refusable::kNo, CallKind::kShort);
}

async::Task<Result<std::unique_ptr<gantry::Container>>> BackendProxy::Create(
    const Container& container, const ContainerRequest& request, Deadline deadline) {
  const SandboxEntryPtr entry = container.sandbox;
  co_return co_await calls_.Run(BackendCalls::NameOf(*entry, "create", container.id.str()),
                                deadline, [&]() -> Result<std::unique_ptr<gantry::Container>> {
                                  const backend::CallDeadline limit(deadline);
                                  return backend::GuardedCall(entry->backend_name, [&] {
                                    return entry->sandbox->CreateContainer(request,
                                                                           *container.context);
                                  });
                                });
}

async::Task<Result<bool>> BackendProxy::HasStarted(const Container& container, Deadline deadline) {
  co_return co_await calls_.Run(
      "look after", BackendCall(container).By(deadline),
      [&context = *container.context](const BackendCall& call) -> Result<bool> {
        return call.OnContainer([&](gantry::Container& object) -> Result<bool> {
          GANTRY_TRY(const bool started, object.HasStarted());
          return started && !context.IsStarting();
        });
      },
      Refusable::kNo, CallKind::kLong);
}

async::Task<Status> BackendProxy::KillAll(const Container& container, uint32_t signal,
                                          std::chrono::milliseconds limit) {
  co_return co_await calls_.Run(
      "kill all of", BackendCall(container).By(DeadlineIn(limit)),
      [signal, limit](const BackendCall& call) {
        return CgroupDefaults(call).KillAll(signal, limit);
      },
      Refusable::kNo);
}

async::Task<Status> BackendProxy::Pause(const Container& container, std::chrono::milliseconds limit,
                                        Deadline deadline) {
  co_return co_await calls_.Run(
      "pause", BackendCall(container).By(deadline),
      [limit](const BackendCall& call) { return CgroupDefaults(call).Pause(limit); });
}

async::Task<Status> BackendProxy::Resume(const Container& container,
                                         std::chrono::milliseconds limit, Deadline deadline) {
  co_return co_await calls_.Run(
      "resume", BackendCall(container).By(deadline),
      [limit](const BackendCall& call) { return CgroupDefaults(call).Resume(limit); });
}

async::Task<Status> BackendProxy::Update(const Container& container, const std::string& json,
                                         CgroupUpdate& update, Deadline deadline) {
  co_return co_await calls_.Run(
      "update", BackendCall(container).By(deadline),
      [&](const BackendCall& call) { return CgroupDefaults(call).Update(json, update); });
}

async::Task<Result<stats::TypedMessage>> BackendProxy::Stats(const Container& container,
                                                             cgroup::CgroupMode node,
                                                             Deadline deadline) {
  co_return co_await calls_.Run(
      "measure", BackendCall(container).By(deadline),
      [node](const BackendCall& call) { return CgroupDefaults(call).Stats(node); }, Refusable::kYes,
      CallKind::kShort);
}

async::Task<Result<std::vector<ProcessInfo>>> BackendProxy::Processes(const Container& container,
                                                                      Deadline deadline) {
  co_return co_await calls_.Run(
      "list processes of", BackendCall(container).By(deadline),
      [](const BackendCall& call) { return CgroupDefaults(call).Processes(); }, Refusable::kYes,
      CallKind::kShort);
}

async::Task<Status> BackendProxy::Checkpoint(const Container& container,
                                             const CheckpointRequest& request) {
  co_return co_await calls_.Run(
      "checkpoint", BackendCall(container), [&](const BackendCall& call) -> Status {
        GANTRY_CHECK_OK(os::MakeDirs(request.path, 0700));
        return call.OnContainer(
            [&](gantry::Container& object) { return object.Checkpoint(request); });
      });
}

async::Task<Status> BackendProxy::Delete(const Container& container, Deadline deadline) {
  co_return co_await calls_.Run(
      "delete", BackendCall(container).By(deadline),
      [](const BackendCall& call) {
        return call.OnContainer([](gantry::Container& object) { return object.Delete(); });
      },
      Refusable::kNo);
}

async::Task<Result<std::unique_ptr<Process>>> BackendProxy::Exec(const Container& container,
                                                                 const TaskProcess& exec,
                                                                 const ExecRequest& request,
                                                                 Deadline deadline) {
  co_return co_await calls_.Run("exec in",
                                BackendCall(container).By(deadline).SpawningFor(exec.starting),
                                [&](const BackendCall& call) {
                                  return call.OnContainer([&](gantry::Container& object) {
                                    return object.Exec(request, *exec.context);
                                  });
                                });
}

async::Task<Result<std::unique_ptr<Process>>> BackendProxy::RecoverExec(const Container& container,
                                                                        const TaskProcess& exec,
                                                                        const ExecRequest& request,
                                                                        Deadline deadline) {
  co_return co_await calls_.Run(
      "recover exec in", BackendCall(container).By(deadline),
      [&](const BackendCall& call) {
        return call.OnContainer([&](gantry::Container& object) {
          return object.RecoverExec(request, *exec.context, true);
        });
      },
      Refusable::kNo, CallKind::kLong);
}

async::Task<Status> BackendProxy::Start(const Container& container, const TaskProcess& process,
                                        Deadline deadline) {
  BackendCall target = BackendCall(container, &process).By(deadline);
  co_return co_await calls_.Run(
      "start", std::move(target).SpawningFor(process.starting), [](const BackendCall& call) {
        return call.OnProcess([](gantry::Process& object) { return object.Start(); });
      });
}

async::Task<Status> BackendProxy::Kill(const Container& container, const TaskProcess& process,
                                       uint32_t signal, Deadline deadline) {
  BackendCall target = BackendCall(container, &process).By(deadline);
  const keeper_client::WatchedProcessPtr host = process.host;
  const bool is_init = process.is_init();
  if (!target.process && !host) {
    co_return Fail(Code::kFailedPrecondition,
                   "kill {} '{}': it has not been started: failed precondition",
                   is_init ? "container" : "exec", is_init ? container.id.str() : process.id.str());
  }
  co_return co_await calls_.Run(
      "kill", std::move(target),
      [signal, host, is_init](const BackendCall& call) -> Status {
        Status status = Fail(Code::kUnimplemented, "no backend");
        if (call.process) {
          status =
              call.OnProcess([signal](gantry::Process& object) { return object.Kill(signal); });
        }
        if (IsLeftOut(status) && host) {
          status = host->Signal(static_cast<int>(signal));
          if (!status && status.error().code == Code::kNotFound) {
            status = Fail(Code::kNotFound, "process already finished: not found");
          }
        }
        // Whoever has sent it: what is frozen does not take it.
        if (is_init && signal == SIGKILL) {
          call.cgroup.ThawToDie();
        }
        return status;
      },
      Refusable::kNo);
}

async::Task<Status> BackendProxy::ConsoleSignal(const Container& container,
                                                const TaskProcess& process, uint32_t signal,
                                                Deadline deadline) {
  co_return co_await calls_.Run(
      "signal the console of", BackendCall(container, &process).By(deadline),
      [signal](const BackendCall& call) {
        return call.OnProcess(
            [signal](gantry::Process& object) { return object.ConsoleSignal(signal); });
      },
      Refusable::kNo);
}

async::Task<Status> BackendProxy::Resize(const Container& container, const TaskProcess& process,
                                         ConsoleSize size, Deadline deadline) {
  co_return co_await calls_.Run(
      "resize", BackendCall(container, &process).By(deadline),
      [size](const BackendCall& call) {
        return call.OnProcess([size](gantry::Process& object) { return object.Resize(size); });
      },
      Refusable::kYes, CallKind::kShort);
}

async::Task<Status> BackendProxy::CloseStdin(const Container& container, const TaskProcess& process,
                                             Deadline deadline) {
  co_return co_await calls_.Run(
      "close stdin of", BackendCall(container, &process).By(deadline),
      [](const BackendCall& call) {
        return call.OnProcess([](gantry::Process& object) { return object.CloseStdin(); });
      },
      Refusable::kYes, CallKind::kShort);
}

async::Task<Status> BackendProxy::Delete(const Container& container, const TaskProcess& exec,
                                         Deadline deadline) {
  if (!exec.backend) {
    co_return Status();
  }
  co_return co_await calls_.Run(
      "delete", BackendCall(container, &exec).By(deadline),
      [](const BackendCall& call) {
        return call.OnProcess([](gantry::Process& object) { return object.Delete(); });
      },
      Refusable::kNo);
}

async::Task<void> BackendProxy::Free(const Container& container,
                                     std::vector<std::shared_ptr<Process>> objects,
                                     Deadline deadline) {
  if (!container.sandbox) {
    co_return;
  }
  const Status freed = co_await calls_.Run(
      BackendCalls::NameOf(*container.sandbox, "free", container.id.str()), deadline,
      [&]() -> Status {
        for (std::shared_ptr<Process>& object : objects) {
          object.reset();
        }
        return {};
      },
      Refusable::kNo, CallKind::kShort);
  IgnoreError(freed, "they then end here");
}

}  // namespace gantry::task
