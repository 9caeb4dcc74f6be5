// SPDX-License-Identifier: Apache-2.0
//
// Which methods there are, Create and Start as they come in, what the calls share (look-ups), and
// containers as they come and go.
#include "core/task/service.h"

#include <optional>
#include <utility>

#include "core/config/config.h"
#include "core/events/publisher.h"
#include "core/keeper_client/keeper_link.h"
#include "core/link/messages.h"
#include "core/log/log.h"
#include "core/task/registrar.h"

namespace gantry::task {

Service::Service(const Parts& parts)
    : parts_(parts),
      records_(parts_.services),
      calls_(parts_),
      proxy_(calls_),
      exits_(parts_, containers_, records_, proxy_),
      sandboxes_(parts_, calls_, proxy_),
      members_(parts_, instances_, containers_, records_, calls_, sandboxes_, pods_),
      remover_(parts_, containers_, records_, calls_, proxy_, members_),
      pods_(parts_, records_, calls_, proxy_, instances_, sandboxes_, order_, remover_),
      console_signals_(parts_, proxy_),
      factory_(parts_, exits_, console_signals_),
      process_recovery_(parts_, sandboxes_, proxy_, exits_, factory_, replays_),
      container_recovery_(parts_, calls_, proxy_, exits_, sandboxes_, pods_, members_, remover_,
                          factory_, process_recovery_, left_streams_),
      recovery_(parts_, instances_, containers_, records_, sandboxes_, pods_, order_, remover_,
                container_recovery_, replays_),
      creator_(parts_, instances_, containers_, records_, calls_, proxy_, exits_, sandboxes_, pods_,
               members_, remover_, factory_, order_, left_streams_),
      starter_(parts_, records_, calls_, proxy_, exits_, remover_) {}

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
  // Where there are any, the Create never came again.
  for (const std::string& name : left_streams_.Take(key)) {
    parts_.services.link.Drop(StreamPrefix(number, ExecId()) + name);
  }
  pods_.InstanceRemoved(*removed->group, number);
  if (const ContainerPtr held = containers_.Find(key); held && held->instance == number) {
    async::Start(remover_.FreeRemoved(held, gone.with_group));
  }
  if (removed->last) {
    sandboxes_.ForgetGroup(removed->group->address);
  }
}

}  // namespace gantry::task
