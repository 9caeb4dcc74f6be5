// SPDX-License-Identifier: Apache-2.0
//
// How a sentry is asked how a process ends.
#pragma once

#include <memory>
#include <vector>

#include <gantry/context.h>
#include <gantry/toolkit/guest/exit_wait.h>

#include "plugins/gvisor/urpc/connection.h"

namespace gantry::gvisor {

/// As `ExitWait::Begin`. `connections`: each with a Wait or a WaitPID under way.
Result<std::shared_ptr<ExitWait>> AwaitEnd(SandboxContext& context,
                                           std::vector<urpc::Connection> connections,
                                           ExitWait::Ended ended);

}  // namespace gantry::gvisor
