// SPDX-License-Identifier: Apache-2.0
//
// What the engine counts as it goes, for its metrics: plain numbers of the loop's thread, so a
// call that is counted waits for nobody. All of it begins at zero with each engine.
#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace gantry::metrics {

/// How long something took, by bounds that suit from a signal to a machine that boots.
class Histogram {
 public:
  /// In seconds, each a bucket's largest value. What is above them all has a bucket, too.
  static constexpr std::array kBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                         0.5,   1.0,    2.5,   5.0,  10.0,  30.0, 60.0};

  void Add(std::chrono::nanoseconds took);

  /// Of each bucket alone.
  const std::array<uint64_t, kBounds.size() + 1>& buckets() const { return buckets_; }

  std::chrono::nanoseconds sum() const { return sum_; }

  bool operator==(const Histogram&) const = default;

 private:
  std::array<uint64_t, kBounds.size() + 1> buckets_{};
  std::chrono::nanoseconds sum_{};
};

/// A call of containerd's that a backend has to do with.
struct CallKey {
  /// Empty: it failed before there was one.
  std::string backend;
  /// The method's name.
  std::string call;
  /// What it was about: "init", "exec" or "sandbox".
  std::string process;

  auto operator<=>(const CallKey&) const = default;
};

struct CallFigures {
  Histogram took;
  uint64_t failures = 0;

  bool operator==(const CallFigures&) const = default;
};

/// How a process ended. As containerd is told: a status above 128 is a signal's.
enum class Ending { kZero, kNonZero, kSignal, kOutOfMemory };

struct ExitKey {
  std::string backend;
  bool exec = false;
  Ending ending = Ending::kZero;

  auto operator<=>(const ExitKey&) const = default;
};

/// `out_of_memory`: it was in a container that ran out of memory.
Ending EndingOf(uint32_t status, bool out_of_memory);

/// Thread: the engine's loop; a copy is anybody's.
struct Figures {
  std::map<CallKey, CallFigures> calls;
  std::map<ExitKey, uint64_t> exits;
  /// By backend: how often containers ran out of memory.
  std::map<std::string, uint64_t> out_of_memory;
  /// Turns of the loop that took long.
  uint64_t slow_turns = 0;

  void Call(CallKey key, std::chrono::nanoseconds took, bool failed);
  void Exit(const std::string& backend, bool exec, Ending ending);
};

}  // namespace gantry::metrics
