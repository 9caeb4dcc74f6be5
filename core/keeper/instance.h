// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "core/async/loop.h"
#include "core/link/handover_messages.h"
#include "core/link/last_resort_messages.h"

namespace gantry::keeper {

/// What containerd has announced and not yet deleted (instances.h).
struct Instance {
  /// Number, announcement, address, `forgotten`: as the engine is told.
  link::InstanceAdded told;
  std::string socket_path;
  link::LastResort last_resort;
  /// Came by AddMember: containerd knows it only through its group's socket.
  bool member = false;
  /// How its init ended, once the keeper has seen that, or the engine has told it.
  std::optional<link::Deleted> ended;
  /// Of a tombstone. Not handed over.
  async::TimerId tombstone_timer{};

  /// What the next program is handed (state.h).
  void Each(this auto& self, auto&& field) {
    field(1, self.told);
    field(2, self.socket_path);
    field(3, self.last_resort);
    field(4, self.member);
    field(5, self.ended);
  }
};

}  // namespace gantry::keeper
