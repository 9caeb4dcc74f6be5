// SPDX-License-Identifier: Apache-2.0
//
// The commands that put another program in the place of the engine or the keeper.
#pragma once

#include <string>

#include <gantry/error.h>

#include "core/ctl/arguments.h"

namespace gantry::ctl {

/// `restart`: a newly started engine in place of the one that runs. Gives the output.
/// Errors: of the keeper; the old one goes on. Blocks: until the new one is in charge.
Result<std::string> Restart(const Arguments& arguments);
/// `upgrade`: of the engine, or of the keeper. Errors: as `Restart`; kInvalidArgument: the program
/// is none, or both are named.
Result<std::string> Upgrade(const Arguments& arguments);

}  // namespace gantry::ctl
