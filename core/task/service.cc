// SPDX-License-Identifier: Apache-2.0
#include "core/task/service.h"

#include <utility>

#include <gantry/format.h>

#include "core/log/log.h"
#include "core/rpc/typed.h"
#include "core/task/stdio_host.h"

namespace gantry::task {

namespace {

/// What the names of a process's streams in the descriptor store begin with.
std::string StreamPrefix(uint64_t instance, const ExecId& exec) {
  return Format("{}/{}/io/", instance, exec.str());
}

}  // namespace

void SetTimestamp(wire::Timestamp* to, int64_t since_epoch_ns) {
  constexpr int64_t kSecond = 1'000'000'000;
  to->set_seconds(since_epoch_ns / kSecond);
  to->set_nanos(static_cast<int32_t>(since_epoch_ns % kSecond));
}

Service::Service(const Parts& parts) : parts_(parts) {}

Service::~Service() = default;

Status Service::Register(rpc::MethodTable& table) {
  for (const std::string service : {"containerd.task.v2.Task", "containerd.task.v3.Task"}) {
    Status status;
    const auto add = [&]<class Req, class Resp>(
                         const char* method,
                         os::Task<Result<Resp>> (Service::*call)(const CallContext&, Req)) {
      if (status) {
        status = rpc::AddTyped<Req, Resp>(table, service, method,
                                          [this, call](const CallContext& context, Req request) {
                                            return (this->*call)(context, std::move(request));
                                          });
      }
    };
    add("Create", &Service::Create);
    add("Start", &Service::Start);
    add("Delete", &Service::Delete);
    add("State", &Service::GetState);
    add("Exec", &Service::Exec);
    add("Wait", &Service::Wait);
    add("Kill", &Service::Kill);
    add("Pids", &Service::Pids);
    add("Pause", &Service::Pause);
    add("Resume", &Service::Resume);
    add("ResizePty", &Service::ResizePty);
    add("CloseIO", &Service::CloseIO);
    add("Update", &Service::Update);
    add("Checkpoint", &Service::Checkpoint);
    add("Stats", &Service::Stats);
    add("Connect", &Service::Connect);
    add("Shutdown", &Service::Shutdown);
    GANTRY_CHECK_OK(std::move(status));
  }
  return {};
}

Service::Key Service::KeyOf(const Group& group, std::string_view id) const {
  return Key{group.grpc_address, group.ns.str(), std::string(id)};
}

Result<std::shared_ptr<const Group>> Service::GroupOf(const CallContext& call) const {
  const auto found = groups_.find(call.address);
  if (found == groups_.end()) {
    return Fail(Code::kInternal, "call on '{}': no instance was announced there", call.address);
  }
  return found->second;
}

os::Task<Result<ContainerPtr>> Service::Find(const CallContext& call, std::string id) {
  GANTRY_CO_TRY(const std::shared_ptr<const Group> group, GroupOf(call));
  const Key key = KeyOf(*group, id);
  if (const auto found = containers_.find(key); found != containers_.end()) {
    const ContainerPtr container = found->second;
    co_await container->ready.Wait();
  }
  // Looked up again: the one that was waited for may have turned out gone.
  const auto found = containers_.find(key);
  if (found == containers_.end() || !found->second->init) {
    co_return Fail(Code::kNotFound, "container not created: not found");
  }
  co_return found->second;
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
  process->stdio_host =
      std::make_unique<StdioHost>(parts_.services, StreamPrefix(container.instance, process->id));
  process->context = std::make_unique<ProcessContextImpl>(parts_, *this, process);
  return process;
}

ContainerPtr Service::Enter(const ContainerId& id, std::shared_ptr<const Group> group) {
  const Key key = KeyOf(*group, id.str());
  auto container = std::make_shared<Container>(id, std::move(group));
  if (const auto instance = instance_of_.find(key); instance != instance_of_.end()) {
    container->instance = instance->second;
  }
  containers_[key] = container;
  return container;
}

void Service::Leave(Container& container) {
  const auto found = containers_.find(KeyOf(*container.group, container.id.str()));
  if (found != containers_.end() && found->second.get() == &container) {
    containers_.erase(found);
  }
  if (container.init) {
    container.init->SetGone();
  }
  for (const auto& [id, exec] : container.execs) {
    exec->SetGone();
  }
  container.left.Set();
}

os::Task<Status> Service::Save(Container& container) {
  auto writer = container.record.Writer(container.record.Next(ToRecord(container)));
  co_return co_await parts_.services.pool.Run(std::move(writer));
}

void Service::Protect(const Container& container) {
  link::Plan plan = ToPlan(container);
  if (EndsWithSandbox(container)) {
    for (const os::ProcessId& process :
         parts_.services.processes.SpawnedBelow(container.sandbox_prefix + "/")) {
      plan.processes.push_back({process.pid, process.start_time});
    }
  }
  parts_.services.link.Protect(container.instance, std::move(plan));
}

void Service::Publish(events::Event event) { parts_.publishers.Publish(std::move(event)); }

void Service::InstanceAdded(link::InstanceAdded instance) {
  const link::Announce& announce = instance.announce;
  Result<Namespace> ns = Namespace::Parse(announce.ns);
  if (!ns) {
    LogError("instance '{}': {}", announce.id, ns.error().message);
    return;
  }
  if (!groups_.contains(instance.address)) {
    auto group = std::make_shared<Group>();
    group->address = instance.address;
    group->grpc_address = announce.grpc_address;
    group->ttrpc_address = announce.ttrpc_address;
    group->ns = std::move(*ns);
    group->id = announce.group.empty() ? announce.id : announce.group;
    group->handler = announce.handler;
    group->options_type_url = announce.options_type_url;
    group->options = announce.options;
    groups_[instance.address] = std::move(group);
  }
  const Group& group = *groups_[instance.address];
  if (!instance.forgotten) {
    instance_of_[KeyOf(group, announce.id)] = instance.number;
  }
  parts_.publishers.Nudge(group.ttrpc_address);
  instances_[instance.number] = std::move(instance);
}

void Service::InstanceRemoved(uint64_t number) {
  const auto found = instances_.find(number);
  if (found == instances_.end()) {
    return;
  }
  const std::string address = found->second.address;
  const Key key = KeyOf(*groups_[address], found->second.announce.id);
  instances_.erase(found);
  if (const auto left = left_streams_.extract(key)) {
    // The Create never came again.
    const std::string prefix = StreamPrefix(number, ExecId());
    for (const std::string& name : left.mapped()) {
      parts_.services.link.Drop(prefix + name);
    }
  }
  if (const auto entry = instance_of_.find(key);
      entry != instance_of_.end() && entry->second == number) {
    instance_of_.erase(entry);
  }
  if (const auto held = containers_.find(key);
      held != containers_.end() && held->second->instance == number) {
    os::Start(FreeRemoved(held->second));
  }
  for (const auto& [other, instance] : instances_) {
    if (instance.address == address) {
      return;
    }
  }
  groups_.erase(address);
  sandbox_slots_.erase(address);
}

std::vector<ContainerPtr> Service::Containers() const {
  std::vector<ContainerPtr> all;
  all.reserve(containers_.size());
  for (const auto& [key, container] : containers_) {
    all.push_back(container);
  }
  return all;
}

}  // namespace gantry::task
