// SPDX-License-Identifier: Apache-2.0
//
// Calls of contexts from a thread that knows no end.
#pragma once

#include <gantry/container.h>
#include <gantry/context.h>
#include <gantry/process.h>

#include "tests/contract/misbehave/mischief.h"

namespace gantry::misbehave {

/// Waits for the gate on a thread of its own and then calls everything there is.
void CallLate(const Mischief& mischief, SandboxContext& sandbox, ContainerContext& container,
              ProcessContext& process);

}  // namespace gantry::misbehave
