// SPDX-License-Identifier: Apache-2.0
//
// What of a module WasmEdge is shown.
#pragma once

#include <string>
#include <string_view>

#include <gantry/error.h>

namespace gantry::wasm {

/// The module without its custom sections: in one of them, `wasmedge`, that engine looks for
/// machine code which it would run in the place of the module's own, whoever has put it there. The
/// others are for debuggers. Errors: kInvalidArgument: as `WalkSections`, and of a component.
Result<std::string> WithoutCustomSections(std::string_view module);

}  // namespace gantry::wasm
