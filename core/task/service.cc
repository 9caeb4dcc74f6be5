// SPDX-License-Identifier: Apache-2.0
//
// Which methods there are, Create and Start as they come in, and what the calls share: look-ups.
#include "core/task/service.h"

#include <optional>
#include <utility>

#include "core/config/config.h"
#include "core/events/publisher.h"
#include "core/task/components.h"
#include "core/task/registrar.h"

namespace gantry::task {

Service::Service(Components& with, const Pods& pods)
    : parts_(with.parts),
      records_(with.records),
      calls_(with.calls),
      proxy_(with.proxy),
      instances_(with.instances),
      order_(with.order),
      meter_(with.meter),
      remover_(with.remover),
      factory_(with.factory),
      replays_(with.replays),
      containers_(with.containers),
      creator_(with, pods),
      starter_(parts_, records_, calls_, proxy_, with.exits, remover_) {}

Status Service::Register(rpc::MethodTable& table) {
  for (const std::string service : {"containerd.task.v2.Task", "containerd.task.v3.Task"}) {
    Registrar<Service> methods(table, service, *this, calls_, order_, meter_);
    const config::Timeouts& limits = parts_.config.timeouts;
    methods.Add("Create", &Service::Create, limits.create);
    methods.Add("Start", &Service::Start, limits.start);
    methods.Add("Delete", &Service::Delete, limits.remove);
    methods.Add("State", &Service::GetState, limits.pause);
    methods.Add("Exec", &Service::Exec, limits.exec_start);
    methods.Add("Wait", &Service::Wait);
    methods.Add("Kill", &Service::Kill, limits.kill);
    methods.Add("Pids", &Service::Pids, limits.pause);
    methods.Add("Pause", &Service::Pause, limits.pause);
    methods.Add("Resume", &Service::Resume, limits.pause);
    methods.Add("ResizePty", &Service::ResizePty, limits.kill);
    methods.Add("CloseIO", &Service::CloseIO, limits.kill);
    methods.Add("Update", &Service::Update, limits.pause);
    methods.Add("Checkpoint", &Service::Checkpoint);
    methods.Add("Stats", &Service::Stats, limits.pause);
    methods.Add("Connect", &Service::Connect, limits.pause);
    methods.Add("Shutdown", &Service::Shutdown);
    GANTRY_CHECK_OK(methods.status());
  }
  return {};
}

async::Task<Result<ContainerPtr>> Service::Find(const CallContext& call, std::string id) {
  GANTRY_CO_TRY(const GroupPtr group, instances_.GroupAt(call.address));
  const Key key = KeyOf(*group, id);
  if (const ContainerPtr container = containers_.Find(key)) {
    co_await container->ready.Wait();
  }
  // Looked up again: the one that was waited for may have turned out gone.
  ContainerPtr found = containers_.Find(key);
  if (!found || !found->init) {
    co_return Fail(Code::kNotFound, "container not created: not found");
  }
  co_return found;
}

async::Task<Result<TaskProcessPtr>> Service::FindProcess(const CallContext& call, std::string id,
                                                         std::string exec_id) {
  GANTRY_CO_TRY(const ContainerPtr container, co_await Find(call, std::move(id)));
  if (exec_id.empty()) {
    co_return container->init;
  }
  for (const auto& [known, exec] : container->execs) {
    if (known.str() == exec_id) {
      co_return exec;
    }
  }
  co_return Fail(Code::kNotFound, "process does not exist {}: not found", exec_id.substr(0, 80));
}

async::Task<Result<pb::CreateTaskResponse>> Service::Create(const CallContext& call,
                                                            pb::CreateTaskRequest request) {
  return creator_.Create(call, std::move(request));
}

async::Task<Result<pb::StartResponse>> Service::Start(const CallContext& call,
                                                      pb::StartRequest request) {
  const bool replay = call.replay;
  const config::Timeouts& timeouts = parts_.config.timeouts;
  const Deadline deadline =
      DeadlineOf(call, request.exec_id().empty() ? timeouts.start : timeouts.exec_start);
  std::optional<ReplayedStarts::Mark> mark;
  if (const auto group = instances_.GroupAt(call.address); replay && group) {
    mark.emplace(replays_, ReplayedStarts::Key{KeyOf(**group, request.id()), request.exec_id()});
  }
  GANTRY_CO_TRY(const TaskProcessPtr process,
                co_await FindProcess(call, request.id(), request.exec_id()));
  GANTRY_CO_TRY(const ContainerPtr container, co_await Find(call, request.id()));
  if (process->is_init()) {
    co_return co_await starter_.StartInit(container, deadline, replay);
  }
  co_return co_await starter_.StartExec(container, process, deadline, replay);
}

void Service::Publish(events::Event event) { parts_.publishers.Publish(std::move(event)); }

}  // namespace gantry::task
