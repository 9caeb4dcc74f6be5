// SPDX-License-Identifier: Apache-2.0
//
// The time that a loop, its timers and all that reckons with them go by. The programs
// go by the kernel's monotonic clock; a test has one that it turns itself.
//
// What waits in a system call, on a worker or in a program without a loop, waits real time
// and reckons with std::chrono::steady_clock.
#pragma once

#include <chrono>
#include <optional>

namespace gantry::async {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

/// Thread: any.
class Clock {
 public:
  Clock() = default;
  virtual ~Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;

  /// Never earlier than what it gave before.
  virtual TimePoint Now() const = 0;

  /// How long a thread may sleep lest it be late for `due`; zero where that has come. Nothing
  /// where no sleep brings it nearer, since the clock stands still.
  virtual std::optional<Duration> Until(TimePoint due) const = 0;
};

/// CLOCK_MONOTONIC. Lives as long as the process.
const Clock& SteadyClock();

}  // namespace gantry::async
