// SPDX-License-Identifier: Apache-2.0
//
// The commands that need the programs that this one carries.
#pragma once

#include <iosfwd>

#include <gantry/error.h>

#include "plugins/wasm/tool/arguments.h"

namespace gantry::wasm::tool {

/// Each of `arguments.what` into the cache, a line about each to `out`, errors to `err`. False: one
/// of them is not there now. Blocks: for the compiles.
bool Compile(const Arguments& arguments, std::ostream& out, std::ostream& err);

/// Removes what is of no image of that containerd. Blocks: for seconds.
bool Clean(const Arguments& arguments, std::ostream& out, std::ostream& err);

}  // namespace gantry::wasm::tool
