// SPDX-License-Identifier: Apache-2.0
//
// By when the backend's call that a worker runs should have ended. The core sets
// it around the call, and the backend asks for what is left of it
// (`SandboxContext::TimeLeft`), so no call of the SDK has to carry it.
#pragma once

#include <chrono>

namespace gantry::backend {

/// Sets the deadline of this thread as long as it lives; then that from before
/// counts again. Thread: any, and to be destroyed on the same one.
class CallDeadline {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr Clock::time_point kNone = Clock::time_point::max();

  explicit CallDeadline(Clock::time_point deadline);
  CallDeadline(const CallDeadline&) = delete;
  CallDeadline& operator=(const CallDeadline&) = delete;
  ~CallDeadline();

  /// Of this thread's deadline: 0 when it has passed, the largest value when
  /// there is none.
  static std::chrono::milliseconds Left();

 private:
  Clock::time_point before_;
};

}  // namespace gantry::backend
