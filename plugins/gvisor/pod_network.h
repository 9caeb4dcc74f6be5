// SPDX-License-Identifier: Apache-2.0
//
// A pod's network from the node's hands into the sentry's, and back.
#pragma once

#include <gantry/error.h>

#include "plugins/gvisor/pod.h"

namespace gantry::gvisor {

/// To be done before the sentry's root is started, or it is restored. What was there is on record
/// before anything is taken, so again, also in the next engine: the same. Errors: as of
/// `ReadNetwork`, `OpenSockets` and `TakeAddresses`; the sentry's. Blocks: briefly.
Status HandOverNetwork(Pod& pod, Deadline deadline, bool is_restore = false);

/// Where the pod has not started, or has ended. Nothing taken: nothing to do.
Status GiveBackNetwork(Pod& pod);

}  // namespace gantry::gvisor
