// SPDX-License-Identifier: Apache-2.0
//
// Pods through CRI, for the rows: the program `cri` beside this one makes them (it
// links gRPC, which this one does not) and says how long each took.
#pragma once

#include <string>

#include <gantry/error.h>

#include "tests/harness/program.h"
#include "tests/performance/lab.h"

namespace gantry::bench {

/// Thread: one. Needs the lab's containerd.
class Pods {
 public:
  /// Started and ready. Errors: containerd's.
  static Result<Pods> Start(Lab& lab);

  /// A line of tests/integration/cri/rounds.h. Units: ms. Blocks: up to two minutes.
  Result<double> Do(const std::string& line);

 private:
  explicit Pods(e2e::Program program) : program_(std::move(program)) {}

  e2e::Program program_;
};

}  // namespace gantry::bench
