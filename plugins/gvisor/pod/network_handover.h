// SPDX-License-Identifier: Apache-2.0
//
// A pod's network from the node's hands into the sentry's, and back.
#pragma once

#include <optional>

#include <gantry/error.h>

#include "plugins/gvisor/pod/pod.h"
#include "plugins/gvisor/sentry/sentry.h"

namespace gantry::gvisor {

/// What the sentry is to be handed; none: it has the node's. What was there is on record before
/// anything is taken, so again, also in the next engine: the same. Errors: as of `ReadNetwork`,
/// `OpenSockets` and `TakeAddresses`. Blocks: briefly.
Result<std::optional<NetworkSetup>> TakeNetwork(Pod& pod, bool is_restore);

/// Where the pod has not started, or has ended. Nothing taken: nothing to do.
Status GiveBackNetwork(Pod& pod);

}  // namespace gantry::gvisor
