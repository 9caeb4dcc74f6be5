// SPDX-License-Identifier: Apache-2.0
#include "core/engine/tasks.h"

#include <optional>
#include <utility>

#include "core/events/publisher.h"
#include "core/keeper_client/keeper_link.h"
#include "core/link/name_owner.h"
#include "core/log/log.h"
#include "core/task/container.h"
#include "core/trace/recorder.h"

namespace gantry::engine {

Tasks::Tasks(const task::Parts& parts)
    : components_(parts, pods_),
      sandbox_service_(components_, pods_),
      recovery_(components_, pods_, sandbox_service_),
      service_(components_, pods_) {}

Tasks::~Tasks() = default;

Status Tasks::Register(rpc::MethodTable& table) {
  GANTRY_CHECK_OK(service_.Register(table));
  return sandbox_service_.Register(table);
}

void Tasks::InstanceAdded(link::InstanceAdded instance) {
  const std::string id = instance.announce.id;
  const uint64_t number = instance.number;
  const Result<task::GroupPtr> group = components_.instances.Add(std::move(instance));
  if (!group) {
    LogError("instance '{}': {}", id, group.error().message);
    return;
  }
  containerd_at_[(*group)->ttrpc_address] = (*group)->grpc_address;
  components_.parts.publishers.Nudge((*group)->ttrpc_address);
  if (told_) {
    Note(*components_.instances.Find(number), "announced");
  }
}

void Tasks::Note(const link::InstanceAdded& instance, std::string_view what) {
  components_.parts.recorder.Note(trace::Kind::kKeeper,
                                  {instance.announce.ns, instance.announce.id, {}}, what);
}

std::string Tasks::SandboxOf(const events::Subject& subject) const {
  const auto containerd = containerd_at_.find(subject.address);
  const task::ContainerPtr container =
      containerd == containerd_at_.end()
          ? nullptr
          : components_.containers.Find(
                {containerd->second, subject.ns.str(), subject.container.str()});
  return container && container->group->id != container->id.str() ? container->group->id
                                                                  : std::string();
}

void Tasks::InstanceRemoved(link::InstanceRemoved gone) {
  const uint64_t number = gone.number;
  const std::optional<task::Instances::Removed> removed = components_.instances.Remove(number);
  if (!removed) {
    return;
  }
  Note(removed->instance, "removed");
  const task::InstanceKey key = task::KeyOf(*removed->group, removed->instance.announce.id);
  // Where there are any, the Create never came again.
  for (const std::string& name : components_.left_streams.Take(key)) {
    components_.parts.services.link.Drop(link::NameOwner::Process(number, "").Name(name));
  }
  sandbox_service_.InstanceRemoved(*removed->group, number);
  if (const task::ContainerPtr held = components_.containers.Find(key);
      held && held->instance == number) {
    async::Start(components_.remover.FreeRemoved(held, gone.with_group));
  }
  if (removed->last) {
    components_.sandboxes.ForgetGroup(removed->group->address);
  }
}

void Tasks::SnapshotEnd(std::vector<std::string> stored) {
  told_ = true;
  recovery_.SnapshotEnd(std::move(stored));
}

void Tasks::DeleteCall(const link::DeleteCall& call) {
  const link::InstanceAdded* const instance = components_.instances.Find(call.instance);
  const async::Charged charged(instance == nullptr ? nullptr : AccountAt(instance->address));
  async::Start(AnswerDeleteCall(call));
}

async::Task<void> Tasks::AnswerDeleteCall(link::DeleteCall call) {
  const link::InstanceAdded* const instance = components_.instances.Find(call.instance);
  const link::Announce announce = instance == nullptr ? link::Announce() : instance->announce;
  const trace::OpenStep step = components_.parts.recorder.Begin(
      trace::Kind::kKeeper, {announce.ns, announce.id, {}}, "shim delete");
  if (!co_await sandbox_service_.AnswerDeleteCall(call)) {
    co_await service_.AnswerDeleteCall(call);
  }
  step.Ended(Code::kOk);
}

}  // namespace gantry::engine
