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
class RequestLock {
 public:
  /// The lock is its owner's while it lives. Thread: one.
  class Held {
   public:
    explicit Held(RequestLock& lock) : lock_(&lock) {}

    Held(Held&& other) noexcept : lock_(std::exchange(other.lock_, nullptr)) {}

    Held& operator=(Held&&) = delete;
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

    ~Held() {
      if (lock_ != nullptr) {
        lock_->End();
      }
    }

   private:
    RequestLock* lock_;
  };

  /// `what` names the one that waits. Errors: kDeadlineExceeded. Blocks: up to `deadline`.
  Result<Held> Take(std::string_view what, Deadline deadline);

 private:
  void End();

  Mutex mutex_;
  std::condition_variable ended_;
  bool taken_ GANTRY_GUARDED_BY(mutex_) = false;
};

}  // namespace gantry::vmm
