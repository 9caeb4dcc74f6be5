// SPDX-License-Identifier: Apache-2.0
//
// One context for each backend that is loaded. What is spawned with it bears a name below
// "backend:", by which it is found again after a restart.
#include "core/task/own_contexts.h"

#include <csignal>
#include <utility>

#include <gantry/backend.h>
#include <gantry/toolkit/process/pidfd.h>

#include "core/backend/context.h"
#include "core/backend/guard.h"
#include "core/config/config.h"
#include "core/keeper_client/host_processes.h"
#include "core/link/name_owner.h"
#include "core/log/log.h"
#include "core/os/process.h"
#include "core/task/backend_calls.h"

namespace gantry::task {

OwnContexts::OwnContexts(const Parts& parts, BackendCalls& calls) : parts_(parts), calls_(calls) {}

OwnContexts::~OwnContexts() = default;

std::vector<BackendHandler> OwnContexts::HandlersOf(const std::string& backend) const {
  std::vector<BackendHandler> handlers;
  for (const auto& [name, handler] : parts_.config.handlers) {
    if (handler.backend == backend) {
      handlers.push_back({name, handler.options.json});
    }
  }
  return handlers;
}

async::Task<void> OwnContexts::Attach(BackendRef backend) {
  backend::ContextOptions options;
  options.backend = backend.name;
  options.owner = link::NameOwner::Backend(backend.name);
  options.counters = &parts_.counters;
  options.max_stored = 0;
  options.save = [name = backend.name](const std::string&) -> Status {
    return Fail(Code::kFailedPrecondition, "backend '{}' saves the state of no sandbox", name);
  };
  const backend::Services& all = parts_.services;
  contexts_.push_back(
      std::make_unique<backend::Context>(backend::Services{all.loop, calls_.PoolOf(backend.name),
                                                           all.link, all.processes, all.cgroups},
                                         std::move(options)));
  backend::Context& context = *contexts_.back();
  const std::vector<BackendHandler> handlers = HandlersOf(backend.name);
  const Status attached = co_await calls_.Run(
      {backend.name, {}, "attach", {}}, DeadlineIn(parts_.config.timeouts.create), [&]() -> Status {
        return backend::GuardedCall(backend.name, [&]() -> Status {
          backend.backend->Attach(context, handlers);
          return {};
        });
      });
  if (!attached) {
    LogError("attach backend '{}': {}", backend.name, attached.error().message);
  }
}

void OwnContexts::EndLeft() {
  keeper_client::HostProcesses& processes = parts_.services.processes;
  for (const ProcessId& process : processes.SpawnedBelow(link::kBackendNames)) {
    if (processes.FindHeld(process)) {
      continue;
    }
    if (const Result<UniqueFd> pidfd = OpenPidfd(process)) {
      IgnoreError(SendSignal(pidfd->get(), SIGKILL), "it has ended just now");
    }
    processes.Release(process);
  }
}

}  // namespace gantry::task
