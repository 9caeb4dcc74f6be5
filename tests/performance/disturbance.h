// SPDX-License-Identifier: Apache-2.0
//
// What is done to gantry while a client is watching it.
#pragma once

#include <gantry/error.h>

#include "tests/performance/lab.h"

namespace gantry::bench {

enum class Disturbance {
  kNone,
  kCrash,    ///< SIGKILL for the engine.
  kUpgrade,  ///< Another engine, of the same program, in its place.
  kKeeper,   ///< The keeper executes its own program in place.
};

/// Blocks: for an upgrade until the new one is in charge; a crash is only begun.
/// Errors: as the keeper answers; kUnavailable where no engine runs.
Status Disturb(const Lab& lab, Disturbance what);

}  // namespace gantry::bench
