// SPDX-License-Identifier: Apache-2.0
//
// A backend that starts a process and does not say which process of the container's it is: its
// end would never be known, and whoever waits would wait for ever.
#pragma once

#include <cstdint>
#include <string_view>

#include <gantry/error.h>

#include "core/task/container.h"
#include "core/task/sandboxes.h"

namespace gantry::task {

/// Clock ticks since boot, as in `ProcessId::start_time`.
uint64_t TicksNow();

/// To be asked when a call of the backend for `process` has succeeded. `since`: `TicksNow` before
/// the call. `call`: "create container 'c1'".
/// Errors: kInternal, with what to do: a process was spawned (one that was only adopted does not
/// count) and none is bound, no pid is said and no end is known. Thread: loop. Blocks: never.
Status CheckBound(const SandboxEntry& sandbox, uint64_t since, const TaskProcess& process,
                  std::string_view call);

}  // namespace gantry::task
