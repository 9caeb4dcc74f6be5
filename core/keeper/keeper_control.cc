// SPDX-License-Identifier: Apache-2.0
//
// Keeper: what shim and gantryctl ask.
#include <unistd.h>

#include <utility>

#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/pidfd.h>

#include "core/keeper/keeper.h"
#include "core/keeper/note.h"
#include "core/os/process.h"

namespace gantry::keeper {
namespace {

constexpr size_t kMaxAnnounceBytes = 256U << 10;

/// Something of the instance is alive, as far as its last resort tells.
bool HasLivingInit(const Instance& instance) {
  const auto& init = instance.last_resort.init;
  if (!init) {
    return false;
  }
  const auto pidfd = OpenPidfd({init->pid, init->start_time});
  return pidfd && !HasEnded(pidfd->get());
}

/// containerd keeps a bundle as long as it knows the instance. Where the folder of
/// all bundles is gone too, something else is wrong.
bool IsGone(const std::string& bundle) {
  const size_t name = bundle.rfind('/');
  return name != std::string::npos && name > 0 && !Exists(bundle) && Exists(bundle.substr(0, name));
}

}  // namespace

void Keeper::OnControl(link::Message message, const Control::Reply& reply) {
  trim_.Touch();
  const auto serve = [&]<class T>(std::type_identity<T>, auto&& handler) {
    if (auto request = message.As<T>()) {
      handler(std::move(*request));
    } else {
      reply.Fail(request.error());
    }
  };
  switch (message.type) {
    case link::Type::kAnnounce:
      if (message.body.size() > kMaxAnnounceBytes) {
        reply.Fail(Error{Code::kResourceExhausted, 0, "announce: too large", {}});
        return;
      }
      return serve(std::type_identity<link::Announce>(), [&](link::Announce announce) {
        auto announced = OnAnnounce(std::move(announce));
        announced ? reply(*announced) : reply.Fail(announced.error());
      });
    case link::Type::kDelete:
      return serve(std::type_identity<link::Delete>(),
                   [&](const link::Delete& request) { OnDelete(request, reply); });
    case link::Type::kUpgrade:
      return serve(std::type_identity<link::Upgrade>(),
                   [&](const link::Upgrade& request) { OnUpgrade(request, reply); });
    case link::Type::kUpgradeKeeper:
      return serve(std::type_identity<link::UpgradeKeeper>(),
                   [&](const auto& request) { OnUpgradeKeeper(request, reply); });
    case link::Type::kQuery:
      return serve(std::type_identity<link::Query>(),
                   [&](const link::Query& query) { reply(StatusNow(query.brief)); });
    default:
      reply.Fail(Error{Code::kUnimplemented, 0, "the keeper does not know this question", {}});
  }
}

Status Keeper::PlaceSocket(const std::string& path, const link::Announce& announce) {
  if (instances_.all().size() >= Instances::kMax) {
    return Fail(Code::kResourceExhausted, "announce '{}': {} instances", announce.id,
                Instances::kMax);
  }
  return front_door_.Listen({path, announce.ns, announce.grpc_address});
}

Result<link::Announced> Keeper::OnAnnounce(link::Announce announce) {
  if (announce.id.empty() || announce.ns.empty()) {
    return Fail(Code::kInvalidArgument, "announce '{}': no id or no namespace", announce.id);
  }
  if (const Instance* old = instances_.Find(announce.grpc_address, announce.ns, announce.id)) {
    if (!old->told.forgotten && HasLivingInit(*old)) {
      return Fail(Code::kAlreadyExists, "announce '{}': it runs: already exists", announce.id);
    }
    Remove(old->told.number);
  }
  announce.rlimits = link::ValidRlimits(announce.rlimits);
  const std::string& group = announce.group.empty() ? announce.id : announce.group;
  const std::string path = options_.run_dir + "/" + kInstanceSockets + "/" +
                           SocketName(announce.grpc_address, announce.ns, group);
  GANTRY_CHECK_OK(PlaceSocket(path, announce));
  // Who starts containers has other plans than to end.
  asked_to_end_ = false;
  Instance& added = instances_.Add(std::move(announce), path, false);
  deaths_.Enter(added);
  TellEngine(added.told);
  supervisor_.Ensure();
  link::Announced announced{added.told.address};
  CollectForsaken();
  return announced;
}

void Keeper::CollectForsaken() {
  constexpr int kAtOnce = 16;
  std::vector<uint64_t> forsaken;
  auto at = instances_.all().upper_bound(looked_at_);
  for (int i = 0; i < kAtOnce; ++i, ++at) {
    if (at == instances_.all().end()) {
      looked_at_ = 0;
      break;
    }
    looked_at_ = at->first;
    if (!at->second.told.forgotten && !at->second.member &&
        front_door_.IsIdle(at->second.socket_path) && IsGone(at->second.told.announce.bundle)) {
      forsaken.push_back(at->first);
    }
  }
  for (const uint64_t number : forsaken) {
    if (Instance* const instance = instances_.Find(number)) {
      Note("'{}': nobody is connected and its bundle is gone: it is deleted",
           instance->told.announce.id);
      deletes_.Begin(*instance, [](const link::Deleted&) {});
    }
  }
}

void Keeper::OnDelete(const link::Delete& request, const Control::Reply& reply) {
  Instance* const instance = instances_.Find(request.grpc_address, request.ns, request.id);
  if (instance == nullptr) {
    reply(link::Deleted{link::kNoPid, os::kKilledStatus, NowNs(), false});
    return;
  }
  deletes_.Begin(*instance, reply);
}

void Keeper::OnUpgrade(const link::Upgrade& request, const Control::Reply& reply) {
  // Whatever was left out is tried once more.
  Forgive();
  supervisor_.Upgrade(request, [reply](const Result<link::Upgraded>& done) {
    done ? reply(*done) : reply.Fail(done.error());
  });
}

void Keeper::OnUpgradeKeeper(const link::UpgradeKeeper& request, const Control::Reply& reply) {
  if (!request.keeper.starts_with('/')) {
    reply.Fail(Error{Code::kInvalidArgument, 0, "upgrade the keeper: not an absolute path", {}});
    return;
  }
  reexec_.Begin(request.keeper, reply.client(), [reply](const Error& error) { reply.Fail(error); });
}

link::KeeperStatus Keeper::StatusNow(bool brief) const {
  link::KeeperStatus status;
  status.keeper_pid = getpid();
  status.started_at_ns = started_at_ns_;
  status.engine_path = supervisor_.path();
  status.engine_pid = supervisor_.pid();
  status.engine_state = static_cast<uint32_t>(supervisor_.state());
  status.engine_starts = supervisor_.starts();
  status.instance_count = instances_.all().size();
  if (!brief) {
    for (const auto& [number, instance] : instances_.all()) {
      status.instances.push_back(instance.told);
    }
  }
  status.sockets = front_door_.listeners();
  status.connections = front_door_.connections();
  status.requests_waiting = front_door_.requests_waiting();
  status.request_bytes = front_door_.request_bytes();
  status.requests_total = front_door_.counters().requests;
  status.requests_refused = front_door_.counters().refused;
  status.requests_replayed = front_door_.counters().replayed;
  status.processes_watched = exits_.watched();
  status.exits_kept = exits_.kept();
  status.descriptors_stored = fd_store_.size();
  status.tombstones = instances_.tombstones();
  status.engine_hangs = supervisor_.hangs();
  status.keeper_upgrades = upgrades_;
  status.requests_dropped = front_door_.counters().dropped;
  status.fell_back_from = supervisor_.fell_back_from();
  status.fell_back_wait_status = supervisor_.fell_back_wait_status();
  status.engine_gaps = supervisor_.gaps();
  status.engine_gap_ns = supervisor_.gap_ns();
  return status;
}

}  // namespace gantry::keeper
