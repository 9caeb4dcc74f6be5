// SPDX-License-Identifier: Apache-2.0
//
// What a request to spawn may not ask for.
#pragma once

#include <string>

#include <gantry/error.h>

#include "core/os/spawn.h"

namespace gantry::os {

/// The file that is executed. `argv` is not empty.
const std::string& ProgramOf(const SpawnRequest& request);

/// Whether there are two children, the second of which is the process.
bool TakesSecond(const SpawnRequest& request);

/// Errors: INVALID_ARGUMENT for a request that contradicts itself.
Status CheckSpawn(const SpawnRequest& request);

}  // namespace gantry::os
