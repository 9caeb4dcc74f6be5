// SPDX-License-Identifier: Apache-2.0
//
// The socket that scrapers connect to.
#pragma once

#include <string>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::metrics {

/// A nonblocking listener at `address` (core/config/listen_address.h). A socket's file, of mode
/// 0600, takes the place of one that an engine before this one left; its folder is made where there
/// is none.
/// Errors: FAILED_PRECONDITION where something else is at the path, or the port is taken;
/// INVALID_ARGUMENT for what is no such address. Blocks: for the file system.
Result<UniqueFd> Listen(const std::string& address);

}  // namespace gantry::metrics
