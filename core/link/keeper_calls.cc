// SPDX-License-Identifier: Apache-2.0
//
// Each call is a connection of its own.
#include "core/link/keeper_calls.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "core/link/channel.h"
#include "core/link/paths.h"
#include "core/link/run_dir.h"

namespace gantry::link {
namespace {

constexpr int kCallSecs = 10;
/// The keeper gives a new engine ten seconds, and the old one two to leave.
constexpr int kRestartSecs = 30;

constexpr std::array<std::pair<EngineState, const char*>, 4> kStates = {{
    {EngineState::kNever, "never"},
    {EngineState::kStarting, "starting"},
    {EngineState::kUp, "up"},
    {EngineState::kWaiting, "waiting"},
}};

}  // namespace

template <class Answer, class Request>
Result<Answer> KeeperCalls::Ask(const Request& request, int seconds) const {
  auto connected = ConnectIn(dir_, kControlSocket);
  if (!connected) {
    return Fail(Code::kUnavailable, "reach the keeper at '{}/{}': {}", dir_, kControlSocket,
                connected.error().message);
  }
  BlockingChannel channel(std::move(*connected));
  return channel.Ask<Answer>(request,
                             std::chrono::steady_clock::now() + std::chrono::seconds(seconds));
}

Result<KeeperStatus> KeeperCalls::Query() const {
  return Ask<KeeperStatus>(link::Query(), kCallSecs);
}

Result<Upgraded> KeeperCalls::UpgradeEngine(const Upgrade& request) const {
  return Ask<Upgraded>(request, kRestartSecs);
}

Result<Deleted> KeeperCalls::Delete(const link::Delete& request) const {
  return Ask<Deleted>(request, kCallSecs);
}

Result<int32_t> KeeperCalls::UpgradeKeeper(const std::string& program) const {
  GANTRY_TRY(const auto done, Ask<KeeperUpgraded>(link::UpgradeKeeper{program}, kRestartSecs));
  return done.keeper_pid;
}

v1::KeeperResponse ToMessage(const KeeperStatus& status) {
  v1::KeeperResponse message;
  message.set_keeper_pid(static_cast<uint32_t>(status.keeper_pid));
  message.set_started_at_ns(status.started_at_ns);
  message.set_engine_path(status.engine_path);
  message.set_engine_pid(static_cast<uint32_t>(status.engine_pid));
  const auto* const state =
      std::ranges::find(kStates, static_cast<EngineState>(status.engine_state),
                        [](const auto& one) { return one.first; });
  message.set_engine_state(state == kStates.end() ? "" : state->second);
  message.set_engine_starts(status.engine_starts);
  message.set_engine_hangs(status.engine_hangs);
  message.set_keeper_upgrades(status.keeper_upgrades);
  message.set_connections(status.connections);
  message.set_requests_waiting(status.requests_waiting);
  message.set_descriptors_stored(status.descriptors_stored);
  message.set_requests_dropped(status.requests_dropped);
  message.set_fell_back_from(status.fell_back_from);
  message.set_fell_back_wait_status(status.fell_back_wait_status);
  for (const InstanceAdded& instance : status.instances) {
    v1::KeptInstance& one = *message.add_instances();
    one.set_namespace_(instance.announce.ns);
    one.set_id(instance.announce.id);
    one.set_bundle(instance.announce.bundle);
    one.set_containerd(instance.announce.grpc_address);
    one.set_left_out(instance.left_out);
  }
  return message;
}

KeeperStatus FromMessage(const v1::KeeperResponse& message) {
  KeeperStatus status;
  status.keeper_pid = static_cast<int32_t>(message.keeper_pid());
  status.started_at_ns = message.started_at_ns();
  status.engine_path = message.engine_path();
  status.engine_pid = static_cast<int32_t>(message.engine_pid());
  for (const auto& [state, name] : kStates) {
    if (message.engine_state() == name) {
      status.engine_state = static_cast<uint32_t>(state);
    }
  }
  status.engine_starts = message.engine_starts();
  status.engine_hangs = message.engine_hangs();
  status.keeper_upgrades = message.keeper_upgrades();
  status.connections = message.connections();
  status.requests_waiting = message.requests_waiting();
  status.descriptors_stored = message.descriptors_stored();
  status.requests_dropped = message.requests_dropped();
  status.fell_back_from = message.fell_back_from();
  status.fell_back_wait_status = message.fell_back_wait_status();
  for (const v1::KeptInstance& one : message.instances()) {
    InstanceAdded& instance = status.instances.emplace_back();
    instance.announce.ns = one.namespace_();
    instance.announce.id = one.id();
    instance.announce.bundle = one.bundle();
    instance.announce.grpc_address = one.containerd();
    instance.left_out = one.left_out();
  }
  status.instance_count = status.instances.size();
  return status;
}

}  // namespace gantry::link
