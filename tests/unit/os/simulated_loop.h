// SPDX-License-Identifier: Apache-2.0
//
// A loop whose time the test turns: nothing is waited for, and what happens when is exact.
//
//   test::SimulatedLoop loop;
//   loop.After(5s, ...);
//   loop.Advance(5s - 1ns);  // not yet
//   loop.Advance(1ns);       // now
#pragma once

#include <atomic>
#include <chrono>
#include <optional>

#include "core/os/clock.h"
#include "core/os/loop.h"

namespace gantry::test {

/// Stands still unless it is turned or let run. Thread: any for `Now` and `Until`.
class SimulatedClock final : public os::Clock {
 public:
  os::TimePoint Now() const override {
    return os::TimePoint(turned_.load()) + (runs_ ? Real() - began_ : os::Duration::zero());
  }

  std::optional<os::Duration> Until(os::TimePoint due) const override {
    const os::TimePoint now = Now();
    if (due <= now) {
      return os::Duration::zero();
    }
    return runs_ ? std::optional(due - now) : std::nullopt;
  }

  void Turn(os::Duration by) { turned_ = turned_.load() + by; }

  /// From now on it goes as fast as real time, for tests that only need to jump ahead. To be
  /// called before other threads use it.
  void Run() {
    began_ = Real();
    runs_ = true;
  }

  void Stop() {
    const os::TimePoint now = Now();
    runs_ = false;
    turned_ = now.time_since_epoch();
  }

 private:
  static os::TimePoint Real() { return std::chrono::steady_clock::now(); }

  /// Begins at the real time, so that its points may be mixed with those of the kernel's clock.
  std::atomic<os::Duration> turned_{Real().time_since_epoch()};
  std::atomic<bool> runs_ = false;
  os::TimePoint began_{};
};

namespace internal {

/// A base, so that it is there before the loop is.
struct WithClock {
  SimulatedClock clock;
};

}  // namespace internal

class SimulatedLoop final : public internal::WithClock, public os::Loop {
 public:
  SimulatedLoop() : os::Loop(clock) {}

  /// Lets so much time go by, and does all that comes due on the way, each at its time. Does
  /// not wait for what others do: other threads, processes, the kernel.
  void Advance(os::Duration by) {
    const os::TimePoint end = clock.Now() + by;
    TurnWhileReady();
    for (auto due = NextDue(); due && *due <= end; due = NextDue()) {
      clock.Turn(*due - clock.Now());
      TurnWhileReady();
    }
    clock.Turn(end - clock.Now());
    TurnWhileReady();
  }

 private:
  void TurnWhileReady() {
    while (RunOnce(std::chrono::milliseconds(0))) {
    }
  }
};

}  // namespace gantry::test
