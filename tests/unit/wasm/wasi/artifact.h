// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gantry::wasm {

/// The artifact of a module, by another program: the compiler and the engine are never in one.
std::string Compiled(const std::string& module);

}  // namespace gantry::wasm
