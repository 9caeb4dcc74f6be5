// SPDX-License-Identifier: Apache-2.0
//
// What one, ten and a hundred idle containers cost.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <gantry/error.h>

#include "tests/performance/lab.h"

namespace gantry::bench {

struct Memory {
  static constexpr int kMost = 100;
  static constexpr int kSome = 10;

  double before = 0;
  std::map<int, double> at;  ///< By number of containers.
  double after = 0;

  double Slope() const { return (at.at(kMost) - at.at(kSome)) / (kMost - kSome); }
};

enum class Whose {
  kSide,
  /// And the containers' own processes.
  kSideAndContainers,
};

/// PSS with so many containers that run `argv`, which sleeps. Units: KiB.
Result<Memory> Climb(Lab& lab, const Side& side, const std::vector<std::string>& argv, Whose whose);

}  // namespace gantry::bench
