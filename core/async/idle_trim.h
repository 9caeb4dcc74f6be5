// SPDX-License-Identifier: Apache-2.0
//
// For keeper, engine and gantry-grpc: gives memory back once nothing has happened for a while,
// and now and then where something always does (containerd 2.3 asks for the
// statistics of pods each second). Costs nothing while nothing happens, and a timer a
// second while something does.
#pragma once

#include <chrono>
#include <functional>
#include <utility>

#include "core/async/loop.h"
#include "core/os/memory.h"

namespace gantry::async {

/// Thread: the loop's.
class IdleTrim {
 public:
  struct Options {
    /// Nothing happened for so long.
    Duration quiet = std::chrono::seconds(1);
    /// So many such times passed with something in each.
    int most_busy = 5;
    std::function<void()> release = os::ReleaseMemory;
  };

  explicit IdleTrim(Loop& loop) : IdleTrim(loop, Options()) {}

  IdleTrim(Loop& loop, Options options) : loop_(loop), options_(std::move(options)) {}

  IdleTrim(const IdleTrim&) = delete;
  IdleTrim& operator=(const IdleTrim&) = delete;

  ~IdleTrim() { loop_.Cancel(timer_); }

  /// Something happened.
  void Touch();
  /// Something small happened where nothing else does, and will again: what it has touched is
  /// given back at once.
  void Tick();

 private:
  void Check();

  Loop& loop_;
  const Options options_;
  TimerId timer_;
  bool touched_ = false;
  int busy_ = 0;
};

}  // namespace gantry::async
