// SPDX-License-Identifier: Apache-2.0
//
// One after the other, and nobody waits longer than he has time: two shutdowns at once must not
// mix their requests on a VMM's socket, and one that hangs must not hold up all others for ever.
#pragma once

#include <condition_variable>
#include <string_view>
#include <utility>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/toolkit/sync/mutex.h>

namespace gantry::vmm {

/// Thread: any.
class Turns {
 public:
  /// While it lives it is its owner's turn. Thread: one.
  class Turn {
   public:
    explicit Turn(Turns& turns) : turns_(&turns) {}

    Turn(Turn&& other) noexcept : turns_(std::exchange(other.turns_, nullptr)) {}

    Turn& operator=(Turn&&) = delete;
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    ~Turn() {
      if (turns_ != nullptr) {
        turns_->End();
      }
    }

   private:
    Turns* turns_;
  };

  /// `what` names the one that waits. Errors: kDeadlineExceeded. Blocks: up to `deadline`.
  Result<Turn> Take(std::string_view what, Deadline deadline);

 private:
  void End();

  Mutex mutex_;
  std::condition_variable ended_;
  bool taken_ GANTRY_GUARDED_BY(mutex_) = false;
};

}  // namespace gantry::vmm
