// SPDX-License-Identifier: Apache-2.0
//
// The test's end of the fault points: what was passed, and what goes wrong next.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/fault/points/control.h"

namespace gantry::fault {

/// One thing that goes wrong.
struct Fault {
  std::string point;
  /// 1: the first time that it is passed.
  uint32_t nth = 1;
  /// 0: SIGKILL.
  int failure = 0;

  bool operator==(const Fault&) const = default;
};

/// `kill at the 2nd "rename to gantry.record"`.
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
  /// The same; it will not happen any more.
  bool Disarm();

 private:
  Control* control_ = nullptr;
};

}  // namespace gantry::fault
