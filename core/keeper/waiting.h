// SPDX-License-Identifier: Apache-2.0
//
// A request of containerd's that is not answered.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "core/async/clock.h"

namespace gantry::keeper {

struct Waiting {
  /// Of its connection.
  uint32_t stream = 0;
  std::string payload;
  /// Of arrival, over all connections.
  uint64_t order = 0;
  /// CLOCK_MONOTONIC, nanoseconds; INT64_MAX: none.
  int64_t deadline_ns = 0;
  /// An engine was given it.
  bool given = false;
  /// So many crashed meanwhile.
  uint32_t deaths = 0;
  /// The last one was: the engine in charge has it.
  bool with_engine = false;
  /// Counts up, over all. Not handed over: by `order` from then on.
  uint64_t given_at = 0;

  async::TimePoint deadline() const { return async::TimePoint(async::Duration(deadline_ns)); }

  /// What the next program is handed (state.h).
  void Each(this auto& self, auto&& field) {
    field(1, self.stream);
    field(2, self.payload);
    field(3, self.order);
    field(4, self.deadline_ns);
    field(5, self.given);
    field(6, self.deaths);
    field(7, self.with_engine);
  }
};

}  // namespace gantry::keeper
