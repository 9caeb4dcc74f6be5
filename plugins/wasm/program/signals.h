// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gantry/error.h>

namespace gantry::wasm {

/// From now on TERM, INT, HUP, QUIT, USR1 and USR2 end the process at once with 128 and their
/// number, whatever its guest does, as PID 1 too, for whom their default is nothing. A closed pipe
/// or socket is an error of the guest's write, not its end.
Status EndOnSignals();

}  // namespace gantry::wasm
