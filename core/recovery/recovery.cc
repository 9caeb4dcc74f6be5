// SPDX-License-Identifier: Apache-2.0
//
// Which instances are taken up, in which order, and what is dropped because nobody has it any
// more.
#include "core/recovery/recovery.h"

#include <chrono>
#include <set>
#include <utility>

#include <gantry/format.h>

#include "core/async/loop.h"
#include "core/async/worker_pool.h"
#include "core/backend/call_deadline.h"
#include "core/config/config.h"
#include "core/keeper_client/host_processes.h"
#include "core/keeper_client/keeper_link.h"
#include "core/link/messages.h"
#include "core/link/name_owner.h"
#include "core/log/log.h"
#include "core/pod/pod_map.h"
#include "core/pod/sandbox_service.h"
#include "core/task/components.h"
#include "core/task/container.h"
#include "core/trace/recorder.h"

namespace gantry::task {
namespace {

/// So many groups at a time. More would only share the same processors, and all would
/// be there at the end, not one after the other.
constexpr int kTurnsAtOnce = 4;
constexpr size_t kGroupsOfATurn = 8;
/// Who takes longer lets the next ones begin beside it.
constexpr auto kOfOneTurn = std::chrono::milliseconds(100);

}  // namespace

Recovery::Recovery(Components& with, const PodMap& pods, SandboxService& sandbox_service)
    : parts_(with.parts),
      instances_(with.instances),
      containers_(with.containers),
      records_(with.records),
      sandboxes_(with.sandboxes),
      pods_(pods),
      sandbox_service_(sandbox_service),
      order_(with.order),
      remover_(with.remover),
      replays_(with.replays),
      process_recovery_(with),
      container_recovery_(with, pods, process_recovery_) {}

/// What is stored for the processes of an instance that has gone while no engine
/// was there. (A sandbox outlives the instance that it is named after.)
void Recovery::DropOrphans() {
  std::erase_if(sandboxes_.stored(), [this](const std::string& name) {
    const uint64_t number = link::InstanceOfShare(link::ShareOf(name));
    const bool orphan = number != 0 && instances_.Find(number) == nullptr &&
                        link::NameOwner::Read(name).kind != link::NameOwner::Kind::kSandbox;
    if (orphan) {
      parts_.services.link.Drop(name);
    }
    return orphan;
  });
}

/// The same of sandboxes that no container uses, and their processes.
void Recovery::DropOrphanedSandboxes() {
  std::set<std::string> used = containers_.SandboxPrefixes();
  pods_.AddPrefixes(used);
  sandboxes_.AbandonAllBut(used);
}

void Recovery::SnapshotEnd(std::vector<std::string> stored) {
  sandboxes_.SetStored(std::move(stored));
  DropOrphans();
  Groups by_group;
  Addresses suspects;
  for (const auto& [number, instance] : instances_.all()) {
    if (instance.left_out) {
      LogError({{"id", instance.announce.id}},
               "it is left out, since {} engines crashed while they took it up", instance.deaths);
      group_left_out_ = true;
      continue;
    }
    const Result<GroupPtr> group = instances_.GroupAt(instance.address);
    const Result<ContainerId> id = ContainerId::Parse(instance.announce.id);
    if (instance.forgotten || !group || !id) {
      continue;
    }
    // Which of the two it is, its record tells.
    const ContainerPtr container =
        containers_.Enter(*id, *group, instances_.NumberOf(KeyOf(**group, id->str())));
    container->bundle = instance.announce.bundle;
    sandbox_service_.Expect(instance);
    by_group[instance.address].push_back(container);
    const bool first = order_.Expect(instance.address);
    if (instance.deaths == 0) {
      order_.Add(instance.address);
    } else if (first) {
      suspects.push_back(instance.address);
    }
  }
  async::Start(AwaitReplays());
  async::Start(RecoverAll(std::move(by_group), std::move(suspects)));
}

async::Task<void> Recovery::AwaitReplays() {
  co_await parts_.services.link.Sync();
  replays_.all_came().Set();
}

async::Task<void> Recovery::RecoverAll(Groups by_group, Addresses suspects) {
  const auto begin = backend::CallDeadline::Clock::now();
  const size_t count = by_group.size();
  const trace::OpenStep step =
      parts_.recorder.Begin(trace::Kind::kEngine, {}, "take up what is left");
  async::Scope turns;
  async::Scope groups;
  for (int i = 0; i < kTurnsAtOnce; ++i) {
    turns.Spawn("recover", RecoverInTurn(by_group, groups));
  }
  co_await turns.Join();
  co_await groups.Join();
  // What engines crashed of, one after the other: so the last one that is begun is known to
  // have done it.
  for (const std::string& address : suspects) {
    LogWarning("taking up what engines crashed of: '{}'", address);
    async::Scope alone;
    const Addresses one = {address};
    BeginRecovery(one, by_group, alone);
    co_await alone.Join();
  }
  parts_.services.link.TellRecovery({{}, {}, true});
  if (!group_left_out_) {
    DropOrphanedSandboxes();
  }
  if (!left_out_ && !group_left_out_) {
    parts_.services.processes.ReleaseUnclaimed();
  }
  step.Ended(Code::kOk, Format("{} sockets", count));
  if (count > 0) {
    LogInfo(
        "took up what {} sockets had, in {} ms", count,
        std::chrono::ceil<std::chrono::milliseconds>(backend::CallDeadline::Clock::now() - begin)
            .count());
  }
  co_await LoadWarm();
}

/// Backends that are to have something ready before anybody asks for it.
async::Task<void> Recovery::LoadWarm() {
  for (const std::string& name : config::WarmBackends(parts_.config)) {
    if (const Status loaded = co_await sandboxes_.Load(name); !loaded) {
      LogWarning("{}", loaded.error().message);
    }
  }
}

async::Task<void> Recovery::RecoverInTurn(Groups& by_group, async::Scope& groups) {
  for (auto next = order_.Next(kGroupsOfATurn); !next.empty(); next = order_.Next(kGroupsOfATurn)) {
    const std::vector<async::OneShot<void>> done = BeginRecovery(next, by_group, groups);
    const auto until = backend::CallDeadline::Clock::now() + kOfOneTurn;
    for (const async::OneShot<void>& group : done) {
      co_await group.WaitFor(parts_.services.loop, until - backend::CallDeadline::Clock::now());
    }
  }
}

std::vector<async::OneShot<void>> Recovery::BeginRecovery(const Addresses& next, Groups& by_group,
                                                          async::Scope& groups) {
  parts_.services.link.TellRecovery({next, {}, false});
  std::vector<async::OneShot<void>> done;
  std::vector<LeftBundle> bundles;
  for (const std::string& address : next) {
    std::vector<ToRecover> group;
    for (const ContainerPtr& container : by_group.at(address)) {
      bundles.push_back({container->id, container->bundle, container->group->account, {}});
      group.push_back({container, bundles.back().found});
    }
    done.push_back(order_.DoneOf(address));
    groups.Spawn(address, RecoverGroup(address, std::move(group)));
  }
  groups.Spawn("look", ReadLeftBundles(parts_.services.loop, parts_.services.pool,
                                       std::move(bundles), parts_.config.limits.max_spec_bytes));
  return done;
}

async::Task<void> Recovery::RecoverGroup(std::string address, std::vector<ToRecover> group) {
  for (const ToRecover& one : group) {
    co_await RecoverInstance(one);
  }
  parts_.services.link.TellRecovery({{}, {address}, false});
  order_.SetDone(address);
}

async::Task<void> Recovery::RecoverInstance(ToRecover one) {
  const ContainerPtr container = one.container;
  const trace::OpenStep step =
      parts_.recorder.Begin(trace::Kind::kRecovery,
                            {container->group->ns.str(), container->id.str(), {}}, "recover", true);
  Found left = std::move(co_await one.found.Wait());
  const link::InstanceAdded* const found = instances_.Find(container->instance);
  link::InstanceAdded instance;
  if (found != nullptr) {
    instance = *found;
  } else {
    // The keeper has removed it meanwhile, with all there was.
    instance.number = container->instance;
    left.record = Fail(Code::kNotFound, "it has been removed");
  }
  const bool is_pod = left.is_pod();
  co_await sandbox_service_.Recover(container->group, instance, is_pod ? &*left.record : nullptr);
  Status recovered;
  if (is_pod) {
    recovered = Fail(Code::kNotFound, "it is a pod");
  } else if (left.record) {
    recovered = co_await container_recovery_.Recover(container, std::move(left));
  } else {
    recovered = std::unexpected(left.record.error());
  }
  if (!recovered) {
    remover_.Leave(*container);
    if (recovered.error().code != Code::kNotFound) {
      LogError({{"ns", container->group->ns.str()}, {"id", container->id.str()}}, "recover: {}",
               recovered.error().message);
      left_out_ = true;
    }
  }
  is_pod ? step.Ended(Code::kOk, "a pod") : step.Ended(recovered);
  container->ready.Set();
  if (recovered) {
    records_.Protect(*container);
  }
}

}  // namespace gantry::task
