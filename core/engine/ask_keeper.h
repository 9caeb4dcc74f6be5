// SPDX-License-Identifier: Apache-2.0
//
// What the keeper says of itself, asked on its control socket as anybody does.
#pragma once

#include <string>

#include <gantry/error.h>

#include "core/link/status_messages.h"

namespace gantry::engine {

/// Without the instances. Blocks: up to half a second: the keeper answers at once, or is about to
/// be replaced. Thread: workers. Errors: kUnavailable, kDeadlineExceeded.
Result<link::KeeperStatus> AskKeeper(const std::string& run_dir);

}  // namespace gantry::engine
