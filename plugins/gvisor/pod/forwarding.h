// SPDX-License-Identifier: Apache-2.0
//
// Forwarding into a pod's sentry, for as long as the pod is there. A pod whose node cannot do
// that runs without it, and the log says so.
#pragma once

#include <gantry/deadline.h>
#include <gantry/error.h>

#include "plugins/gvisor/pod/pod.h"

namespace gantry::gvisor {

/// Once the sentry's root has been started, and after a restart of the engine. Only of a pod
/// with a network namespace that came with it, in which the sentry has its own stack: others
/// can be reached, or are nobody's to reach. Again: nothing happens.
void ForwardPorts(Pod& pod);

/// For as long as the sentry is saved, which it cannot be with what serves a connection in it:
/// connections end, and new ones wait until `ContinueForwarding`. A sandbox that stands still
/// runs for the moment that this takes. Errors: kDeadlineExceeded; the sentry's.
Status SuspendForwarding(Pod& pod, Deadline deadline);
/// After each of those, also where it has failed.
void ContinueForwarding(Pod& pod);

/// Once the sentry has ended, so that no call to it is waited for. Again: success.
/// Errors: kDeadlineExceeded.
Status StopForwarding(Pod& pod);

}  // namespace gantry::gvisor
