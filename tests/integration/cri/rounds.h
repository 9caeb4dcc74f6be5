// SPDX-License-Identifier: Apache-2.0
//
// Pods for the benchmark: reads what to do from stdin, a line each, and answers each
// with how many milliseconds it took, or with `! MESSAGE`.
//
//   sandbox HANDLER NAME    runs a pod; removes it after the time is taken
//   start HANDLER NAME [N IMAGE ARG...]
//                           the same with a container in it, created and started; one that
//                           sleeps, or of that image with these arguments
//   batch HANDLER NAME N    N such pods at once; the time until all containers run
//   keep HANDLER NAME N     N such pods, one after the other, that stay
//   more NAME               a container that ends at once, in the pod that was kept
//                           last, until it is removed again
//   clear                   removes every pod
#pragma once

#include "tests/integration/cri/client.h"

namespace gantry::e2e {

/// Until stdin ends. Returns the program's exit code.
int ServeRounds(CriClient& client);

}  // namespace gantry::e2e
