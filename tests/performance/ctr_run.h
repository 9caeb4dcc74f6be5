// SPDX-License-Identifier: Apache-2.0
//
// What a user sees: `ctr run --rm`, from before its exec to its end.
#pragma once

#include <string>
#include <vector>

#include <gantry/error.h>

#include "tests/harness/node.h"
#include "tests/performance/lab.h"
#include "tests/performance/samples.h"

namespace gantry::bench {

/// A program of an image that ends at once with 0.
struct CtrProgram {
  std::string image = "docker.io/library/busybox:gantry";
  std::vector<std::string> argv{"true"};
  /// Of ctr's, beside those of every run.
  std::vector<std::string> flags = {};
};

/// Once, with one side's runtime. One phase.
Result<Phases> OneCtrRun(Lab& lab, const Side& side, const e2e::Node& node,
                         const CtrProgram& program);

/// Both sides in turns on the lab's containerd.
Result<Pair> CompareCtrRuns(Lab& lab, const Side& ours, const Side& peer, const CtrProgram& program,
                            int warm, int rounds);

}  // namespace gantry::bench
