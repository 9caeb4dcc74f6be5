// SPDX-License-Identifier: Apache-2.0
//
// What a handler's containers can have, for `-info`. Which backend runs them, and which OCI
// runtime, is for the configuration and the backend to say, so gantryd is run for the answer:
// a process of its own, which needs no keeper and no engine.
#pragma once

#include <string_view>

#include <gantry/error.h>

#include "core/shim/answers.h"

namespace gantry::shim {

/// `input`: all that came on stdin, an Any with containerd's options for the runtime or nothing.
/// There is always an answer; what cannot be found out is not promised.
/// Blocks: up to 4 s.
HandlerFeatures AskFeatures(std::string_view handler, const Result<std::string>& input);

}  // namespace gantry::shim
