// SPDX-License-Identifier: Apache-2.0
//
// What a recovery lacks may be there again in a moment: nobody asks for it a second time.
#pragma once

#include <chrono>

#include <gantry/error.h>
#include <gantry/toolkit/process/backoff.h>

#include "core/async/co.h"
#include "core/async/loop.h"

namespace gantry::task {

/// Whether something is to be tried again, and when.
class Shortage {
 public:
  explicit Shortage(async::Loop& loop) : loop_(loop) {}

  /// Waits where `status` is kResourceExhausted. False: of another kind, or it lasts. Not to be
  /// awaited behind && or ||: GCC 14 makes the argument all the same.
  async::Task<bool> MayPass(Status status) {
    if (status || status.error().code != Code::kResourceExhausted || ++tries_ == kTries) {
      co_return false;
    }
    co_await async::Sleep(loop_, backoff_.Next());
    co_return true;
  }

 private:
  static constexpr int kTries = 20;

  async::Loop& loop_;
  int tries_ = 0;
  Backoff backoff_{{.no_event = "nothing tells that a descriptor or memory is free again",
                    .first = std::chrono::milliseconds(50),
                    .longest = std::chrono::milliseconds(50)}};
};

}  // namespace gantry::task
