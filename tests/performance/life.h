// SPDX-License-Identifier: Apache-2.0
//
// A container's life as the shim sees it, without containerd around it: once, and many of
// them at once.
#pragma once

#include <string>
#include <vector>

#include <gantry/error.h>

#include "tests/performance/lab.h"
#include "tests/performance/samples.h"

namespace gantry::bench {

/// `start`, Create, Start, Wait, Delete, `delete` of a container whose program ends at once
/// with 0: a phase each.
Result<Phases> OneLife(Lab& lab, const Side& side, const std::vector<std::string>& argv);

/// `count` of them with `argv`, `at_once` at a time. Bundles are made before and removed after
/// what is timed. Units: ms.
Result<double> ManyLives(Lab& lab, const Side& side, const std::vector<std::string>& argv,
                         int count, int at_once);

}  // namespace gantry::bench
