// SPDX-License-Identifier: Apache-2.0
//
// What the calls of the Task service share: which methods there are, look-ups, and containers
// as they come and go.
#include "core/task/service.h"

#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/process/process_id.h>

#include "core/log/log.h"
#include "core/task/registrar.h"
#include "core/task/stdio_host.h"

namespace gantry::task {

namespace {

/// What the names of a process's streams in the descriptor store begin with.
std::string StreamPrefix(uint64_t instance, const ExecId& exec) {
  return Format("{}/{}/io/", instance, exec.str());
}

}  // namespace

Service::Service(const Parts& parts)
    : parts_(parts),
      records_(parts_.services),
      calls_(parts_),
      proxy_(calls_),
      exits_(parts_, containers_, records_, proxy_),
      sandboxes_(parts_, calls_, proxy_),
      pods_(parts_, records_, calls_, proxy_, instances_, sandboxes_, order_, *this) {}

Service::~Service() = default;

Status Service::Register(rpc::MethodTable& table) {
  for (const std::string service : {"containerd.task.v2.Task", "containerd.task.v3.Task"}) {
    Registrar<Service> methods(table, service, *this, calls_, order_);
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
  return pods_.Register(table);
}

os::Task<Result<ContainerPtr>> Service::Find(const CallContext& call, std::string id) {
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

os::Task<Result<TaskProcessPtr>> Service::FindProcess(const CallContext& call, std::string id,
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

TaskProcessPtr Service::NewProcess(Container& container, ExecId id) {
  auto process = std::make_shared<TaskProcess>(container, std::move(id));
  process->stdio_host = std::make_shared<StdioHost>(
      parts_.services, StreamPrefix(container.instance, process->id), container.group->address,
      [this, owner = container.weak_from_this(), weak = std::weak_ptr(process)] {
        OnConsoleSignals(owner.lock(), weak.lock());
      });
  process->context = std::make_unique<ProcessContextImpl>(parts_, exits_, process);
  process->context->SetBackend(container.backend_name);
  return process;
}

ContainerPtr Service::Enter(const ContainerId& id, GroupPtr group) {
  const Key key = KeyOf(*group, id.str());
  auto container = std::make_shared<Container>(id, std::move(group));
  container->instance = instances_.NumberOf(key);
  containers_.Enter(container);
  return container;
}

/// Its end is no longer needed: an engine that comes now finds no record that asks for it.
void Service::SetGone(TaskProcess& process) {
  if (process.host) {
    parts_.services.processes.Release(process.host->id());
  }
  process.life.SetGone();
}

void Service::Leave(Container& container) {
  containers_.Leave(container);
  if (container.init) {
    SetGone(*container.init);
  }
  for (const auto& [id, exec] : container.execs) {
    SetGone(*exec);
  }
  container.left.Set();
}

void Service::Publish(events::Event event) { parts_.publishers.Publish(std::move(event)); }

void Service::InstanceAdded(link::InstanceAdded instance) {
  const std::string id = instance.announce.id;
  const Result<GroupPtr> group = instances_.Add(std::move(instance));
  if (!group) {
    LogError("instance '{}': {}", id, group.error().message);
    return;
  }
  parts_.publishers.Nudge((*group)->ttrpc_address);
}

void Service::InstanceRemoved(link::InstanceRemoved gone) {
  const uint64_t number = gone.number;
  const std::optional<Instances::Removed> removed = instances_.Remove(number);
  if (!removed) {
    return;
  }
  const Key key = KeyOf(*removed->group, removed->instance.announce.id);
  if (const auto left = left_streams_.extract(key)) {
    // The Create never came again.
    const std::string prefix = StreamPrefix(number, ExecId());
    for (const std::string& name : left.mapped()) {
      parts_.services.link.Drop(prefix + name);
    }
  }
  pods_.InstanceRemoved(*removed->group, number);
  if (const ContainerPtr held = containers_.Find(key); held && held->instance == number) {
    os::Start(FreeRemoved(held, gone.with_group));
  }
  if (removed->last) {
    sandboxes_.ForgetGroup(removed->group->address);
  }
}

}  // namespace gantry::task
