// SPDX-License-Identifier: Apache-2.0
//
// The memory that a fault test shares with the engines under test: which points were
// passed, and at which one something is to happen.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace gantry::fault {

/// Names the file; without it nothing is recorded and nothing happens.
inline constexpr char kFileVariable[] = "GANTRY_FAULT_FILE";
inline constexpr size_t kMaxName = 55;
inline constexpr size_t kMaxPassed = 16384;

/// What can be done at a point, as bits.
enum Kind : uint32_t {
  /// It has an effect outside the process: kill right before it.
  kEffect = 1,
  /// It can fail with ENOSPC.
  kSpace = 2,
  /// It makes a descriptor, so it can fail with EMFILE.
  kDescriptor = 4,
};

/// As a failure: the thread stands still right before the step.
inline constexpr int32_t kStand = -1;

using NameBytes = std::array<char, kMaxName + 1>;

struct Passed {
  NameBytes name;
  /// 0: not yet written.
  std::atomic<uint32_t> kinds;
};

/// All zero at first. The test writes `name`, `nth` and `failure` while `armed` is 0.
struct Control {
  std::atomic<uint32_t> recording;
  /// How many points were passed since it was recorded; may be beyond kMaxPassed.
  std::atomic<uint32_t> passed;
  std::atomic<uint32_t> armed;
  /// Empty: any point.
  NameBytes name;
  /// 1: the first time that such a point is passed.
  uint32_t nth;
  /// What the call fails with; 0: SIGKILL; or kStand.
  int32_t failure;
  std::atomic<uint32_t> hits;
  /// A futex(2).
  std::atomic<uint32_t> fired;
  /// A futex(2): what stands goes on when it is not 0.
  std::atomic<uint32_t> released;
  std::array<Passed, kMaxPassed> trace;
};

}  // namespace gantry::fault
