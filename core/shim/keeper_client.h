// SPDX-License-Identifier: Apache-2.0
//
// Reaching the keeper, and starting it where none runs. A hundred shims may do so
// at the same moment: they queue on DIR/keeper.lock, the first makes the control socket
// and starts the keeper with it, and since that socket listens already, the others
// connect as soon as they have the lock, without waiting for the keeper to be ready.
#pragma once

#include <string>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::shim {

/// A connection to the running keeper. Errors: kNotFound, kUnavailable where none runs;
/// kPermissionDenied where the run directory is not root's alone.
Result<UniqueFd> ConnectKeeper(const std::string& run_dir);

/// The same; starts one if need be, and only then looks for its program. The keeper
/// has a session of its own and holds no descriptor of this process.
/// Blocks: while another shim starts it.
Result<UniqueFd> EnsureKeeper(const std::string& run_dir);

}  // namespace gantry::shim
