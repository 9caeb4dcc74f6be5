// SPDX-License-Identifier: Apache-2.0
//
// For keeper and engine: gives memory back once nothing has happened for a while. Costs nothing
// while nothing happens, and a timer a second while something does.
#pragma once

#include "core/os/loop.h"

namespace gantry::os {

/// Thread: the loop's.
class IdleTrim {
 public:
  explicit IdleTrim(Loop& loop) : loop_(loop) {}

  IdleTrim(const IdleTrim&) = delete;
  IdleTrim& operator=(const IdleTrim&) = delete;

  ~IdleTrim() { loop_.Cancel(timer_); }

  /// Something happened: trimming waits until a second has passed without.
  void Touch();

 private:
  void Look();

  Loop& loop_;
  TimerId timer_;
  bool touched_ = false;
};

}  // namespace gantry::os
