// SPDX-License-Identifier: Apache-2.0
//
// Whether the engine's loop still turns.
#pragma once

#include <cstdint>

#include <gantry/toolkit/proto/proto_message.h>

#include "core/link/message_type.h"

namespace gantry::link {

/// keeper -> engine, to one that asked for it in its Hello. Answer: Pong, from its loop.
struct Ping {
  static constexpr Type kType = Type::kPing;

  uint64_t number = 0;

  void Each(this auto& self, auto&& field) { field(1, self.number); }
};

/// engine -> keeper.
struct Pong {
  static constexpr Type kType = Type::kPong;

  /// The Ping's.
  uint64_t number = 0;

  void Each(this auto& self, auto&& field) { field(1, self.number); }
};

}  // namespace gantry::link
