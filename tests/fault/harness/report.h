// SPDX-License-Identifier: Apache-2.0
//
// Which points were reached in which operation, and how often what went wrong there.
#pragma once

#include <array>
#include <map>
#include <string>
#include <utility>

#include "tests/fault/harness/faults.h"

namespace gantry::fault {

/// Thread: the test's.
class Report {
 public:
  static Report& Get();

  /// A fault that was due in that operation, and whether it happened.
  void Add(const std::string& operation, const Fault& fault, bool happened);

  /// A table, and a line with the sums.
  std::string Text() const;

 private:
  struct Row {
    std::array<int, kTroubles> happened{};
    int missed = 0;
  };

  std::map<std::pair<std::string, std::string>, Row> rows_;
};

}  // namespace gantry::fault
