// SPDX-License-Identifier: Apache-2.0
//
// A container that sleeps, and processes that are executed in it one after the other.
#pragma once

#include <string>
#include <vector>

#include <gantry/error.h>

#include "tests/performance/instance.h"
#include "tests/performance/lab.h"
#include "tests/performance/samples.h"

namespace gantry::bench {

/// Thread: one. Neither of what it is made of is kept beyond the lab.
class ExecTarget {
 public:
  ExecTarget(Lab& lab, const Side& side) : lab_(lab), instance_(lab, side) {}

  /// The container runs `argv`.
  Status Run(const std::vector<std::string>& argv) { return instance_.Run(argv); }

  /// Exec, Start, Wait, Delete of a process that ends at once: a phase each.
  Result<Phases> OneExec(const std::vector<std::string>& argv);

  Status End() { return instance_.End(); }

 private:
  Lab& lab_;
  Instance instance_;
  int count_ = 0;
};

}  // namespace gantry::bench
