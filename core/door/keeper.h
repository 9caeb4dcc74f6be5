// SPDX-License-Identifier: Apache-2.0
//
// What the shim says to the keeper for a container, said for a sandbox that a controller's call
// makes: that there is an instance, and that there is none any more.
#pragma once

#include <string>

#include <gantry/error.h>

#include "core/link/control_messages.h"

namespace gantry::door {

/// Thread: workers. Blocks: up to ten seconds. Errors: kUnavailable: no keeper runs in `run_dir`;
/// kAlreadyExists: such an instance runs; kResourceExhausted.
/// Gives the path of the instance's socket.
Result<std::string> AnnounceInstance(const std::string& run_dir, const link::Announce& instance);

/// Ends it, whatever state it is in, and where no keeper knows it what its bundle's record names.
/// Again, or where there is none: nothing. Thread: workers. Blocks: up to five seconds.
Status DeleteInstance(const std::string& run_dir, const link::Announce& instance);

}  // namespace gantry::door
