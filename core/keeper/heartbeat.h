// SPDX-License-Identifier: Apache-2.0
//
// Finds an engine that lives and does not turn its loop: it is asked now and then, and
// its loop answers. A worker that hangs in a backend's call is not the loop.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "core/async/loop.h"

namespace gantry::keeper {

/// Thread: the keeper's only one.
class Heartbeat {
 public:
  struct Events {
    /// Ask it, with this number.
    std::function<void(uint64_t)> ping;
    /// It has not answered for this long, at least the limit. Called once.
    std::function<void(std::chrono::milliseconds)> silent;
  };

  Heartbeat(async::Loop& loop, Events events);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  /// Asks at once, and again at half the limit. Zero: asks nothing.
  void Begin(std::chrono::milliseconds limit);
  void End();
  void OnPong(uint64_t number);

 private:
  void Ask();
  void Check();

  async::Loop& loop_;
  Events events_;
  std::chrono::milliseconds limit_{};
  uint64_t number_ = 0;
  bool answered_ = true;
  async::TimePoint asked_at_;
  async::TimePoint looked_at_;
  async::TimerId timer_{};
};

}  // namespace gantry::keeper
