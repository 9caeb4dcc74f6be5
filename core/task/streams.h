// SPDX-License-Identifier: Apache-2.0
//
// The streams of a process that is made. (Those of one that is taken up again are taken out of
// the keeper's store.)
#pragma once

#include <gantry/error.h>

#include "core/async/co.h"
#include "core/io/open_stdio.h"
#include "core/task/container.h"

namespace gantry::task {

class BackendCalls;
struct Parts;

/// Opens them and gives them to the process. `given_up`: is set when nobody waits for them any
/// more; null: never. Errors: of `io::ProcessIo::Open`; kUnavailable: no worker is left to the
/// group. Thread: loop; the rest is done by a worker for streams.
async::Task<Status> OpenStreams(const Parts& parts, BackendCalls& calls, TaskProcessPtr process,
                                io::GivenUp given_up = nullptr);

}  // namespace gantry::task
