// SPDX-License-Identifier: Apache-2.0
//
// Pods through CRI, for the rows: the program `cri` beside this one makes them (it
// links gRPC, which this one does not) and says how long each took.
#pragma once

#include <string>

#include <gantry/error.h>

#include "tests/harness/program.h"
#include "tests/performance/lab.h"
#include "tests/performance/samples.h"

namespace gantry::bench {

/// Thread: one. Needs the lab's containerd.
class Pods {
 public:
  /// Started and ready, with `image` known. Errors: containerd's.
  static Result<Pods> Start(Lab& lab,
                            const std::string& image = "docker.io/library/busybox:gantry");

  /// A line of tests/integration/cri/rounds.h. Units: ms. Blocks: up to two minutes.
  Result<double> Do(const std::string& line);

  /// `WORD HANDLER NAME REST` with a name of its own: one phase.
  Result<Phases> Timed(Lab& lab, const std::string& word, const std::string& handler,
                       const std::string& rest);

 private:
  explicit Pods(e2e::Program program) : program_(std::move(program)) {}

  e2e::Program program_;
};

}  // namespace gantry::bench
