// SPDX-License-Identifier: Apache-2.0
//
// The test's end of the fault points: what was passed, and what goes wrong next.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "tests/fault/points/control.h"

namespace gantry::fault {

/// What can go wrong, or only change.
enum class Trouble {
  // In the engine, at a point.
  kKill,
  kNoSpace,
  kNoDescriptors,
  // While a thread of the engine stands still at a point.
  /// It is upgraded, and so ended.
  kUpgrade,
  /// The new engine ends at once; refuses; says nothing.
  kCrashingUpgrade,
  kRefusedUpgrade,
  kSilentUpgrade,
  /// The keeper executes its program again.
  kKeeperUpgrade,
};
inline constexpr int kTroubles = 8;

/// `kill`, as the report calls it.
const char* NameOf(Trouble trouble);
/// The client may get an error.
bool MayFail(Trouble trouble);

/// One thing that goes wrong.
struct Fault {
  std::string point;
  /// 1: the first time that it is passed.
  uint32_t nth = 1;
  Trouble trouble = Trouble::kKill;

  bool operator==(const Fault&) const = default;
};

/// `kill at "rename to gantry.record" no. 2`.
std::string Describe(const Fault& fault);

struct PassedPoint {
  std::string name;
  uint32_t kinds = 0;
  uint32_t times = 0;
};

/// Thread: the test's.
class Faults {
 public:
  /// Makes the file.
  explicit Faults(const std::string& path);
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;
  ~Faults();

  /// Of the run; set by main.
  static Faults& Get();

  void Record();
  /// What was passed since, in the order of the first time.
  std::vector<PassedPoint> Recorded();

  void Arm(const Fault& fault);
  /// Whether it has happened.
  bool happened() const;
  /// Waits for it. False: `stop` was asked for before.
  bool WaitUntilHappened(const std::stop_token& stop) const;
  /// What stands still at the point goes on.
  void Release();
  /// The same; it will not happen any more.
  bool Disarm();

 private:
  Control* control_ = nullptr;
};

}  // namespace gantry::fault
