// SPDX-License-Identifier: Apache-2.0
//
// What gantryctl is told of the keeper.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/link/handover_messages.h"
#include "core/link/message_type.h"

namespace gantry::link {

/// The engine as the keeper sees it.
enum class EngineState : uint32_t {
  kNever = 0,     ///< Not started yet: nothing was announced.
  kStarting = 1,  ///< Running, no Hello yet.
  kUp = 2,
  kWaiting = 3,  ///< It ended; the next start is due after the backoff.
};

/// keeper -> gantryctl: the answer to Query.
struct KeeperStatus {
  static constexpr Type kType = Type::kKeeperStatus;

  int32_t keeper_pid = 0;
  int64_t started_at_ns = 0;
  std::string engine_path;
  int32_t engine_pid = 0;
  /// An EngineState.
  uint32_t engine_state = 0;
  uint64_t engine_starts = 0;
  std::vector<InstanceAdded> instances;
  uint64_t sockets = 0;
  uint64_t connections = 0;
  /// Requests not yet answered, and the bytes kept for them.
  uint64_t requests_waiting = 0;
  uint64_t request_bytes = 0;
  /// Since the keeper's start.
  uint64_t requests_total = 0;
  uint64_t requests_refused = 0;
  uint64_t requests_replayed = 0;
  uint64_t processes_watched = 0;
  uint64_t exits_kept = 0;
  uint64_t descriptors_stored = 0;
  uint64_t tombstones = 0;
  /// How often an engine did not answer its Ping in time, since the keeper's start.
  uint64_t engine_hangs = 0;
  /// So many programs had its process before.
  uint64_t keeper_upgrades = 0;
  /// Requests that were answered by the keeper since engines crashed of them.
  uint64_t requests_dropped = 0;
  /// The engine that an upgrade had put in charge, and that crashed so soon that the keeper
  /// went back to the one before; "" once another upgrade has come. And how it ended.
  std::string fell_back_from;
  int32_t fell_back_wait_status = 0;
  uint64_t instance_count = 0;
  /// How often none was in charge between two engines that were, and for how long in all, since
  /// the keeper's start.
  uint64_t engine_gaps = 0;
  int64_t engine_gap_ns = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.keeper_pid);
    field(2, self.started_at_ns);
    field(3, self.engine_path);
    field(4, self.engine_pid);
    field(5, self.engine_state);
    field(6, self.engine_starts);
    field(7, self.instances);
    field(8, self.sockets);
    field(9, self.connections);
    field(10, self.requests_waiting);
    field(11, self.request_bytes);
    field(12, self.requests_total);
    field(13, self.requests_refused);
    field(14, self.requests_replayed);
    field(15, self.processes_watched);
    field(16, self.exits_kept);
    field(17, self.descriptors_stored);
    field(18, self.tombstones);
    field(19, self.engine_hangs);
    field(20, self.keeper_upgrades);
    field(21, self.requests_dropped);
    field(22, self.fell_back_from);
    field(23, self.fell_back_wait_status);
    field(24, self.instance_count);
    field(25, self.engine_gaps);
    field(26, self.engine_gap_ns);
  }
};

}  // namespace gantry::link
