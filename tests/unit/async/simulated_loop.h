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

#include "core/async/clock.h"
#include "core/async/loop.h"

namespace gantry::test {

/// Stands still unless it is turned or let run. Thread: any for `Now` and `Until`.
class SimulatedClock final : public async::Clock {
 public:
  async::TimePoint Now() const override {
    return async::TimePoint(turned_.load()) + (runs_ ? Real() - began_ : async::Duration::zero());
  }

  std::optional<async::Duration> Until(async::TimePoint due) const override {
    const async::TimePoint now = Now();
    if (due <= now) {
      return async::Duration::zero();
    }
    return runs_ ? std::optional(due - now) : std::nullopt;
  }

  void Turn(async::Duration by) { turned_ = turned_.load() + by; }

  /// From now on it goes as fast as real time, for tests that only need to jump ahead. To be
  /// called before other threads use it.
  void Run() {
    began_ = Real();
    runs_ = true;
  }

  void Stop() {
    const async::TimePoint now = Now();
    runs_ = false;
    turned_ = now.time_since_epoch();
  }

 private:
  static async::TimePoint Real() { return std::chrono::steady_clock::now(); }

  /// Begins at the real time, so that its points may be mixed with those of the kernel's clock.
  std::atomic<async::Duration> turned_{Real().time_since_epoch()};
  std::atomic<bool> runs_ = false;
  async::TimePoint began_{};
};

namespace internal {

/// A base, so that it is there before the loop is.
struct WithClock {
  SimulatedClock clock;
};

}  // namespace internal

class SimulatedLoop final : public internal::WithClock, public async::Loop {
 public:
  SimulatedLoop() : async::Loop(clock) {}

  /// Lets so much time go by, and does all that comes due on the way, each at its time. Does
  /// not wait for what others do: other threads, processes, the kernel.
  void Advance(async::Duration by) {
    const async::TimePoint end = clock.Now() + by;
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
