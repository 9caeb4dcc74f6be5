// SPDX-License-Identifier: Apache-2.0
//
// A point: a step that has an effect outside the process, or that can fail.
//
// The library is loaded before all others (LD_PRELOAD) into the very engine that is
// shipped, and stands between it and the C library: whatever the engine and its backends
// do to the world goes through here, so no step can be forgotten, and nothing of it is in
// a release. What is done to streams of data, and what is only read, is no point.
#pragma once

#include <dlfcn.h>

#include <string_view>

#include "tests/fault/points/control.h"
#include "tests/fault/points/name.h"

namespace gantry::fault {

/// Passes a point. Does not return where the engine is to die here.
/// Returns the errno to fail with; 0: go on.
int Pass(std::string_view verb, std::string_view object, uint32_t kinds);

/// Passes it, and sets errno. True: the call is to fail.
bool Fails(std::string_view verb, std::string_view object, uint32_t kinds);

/// The C library's own function.
template <class Function>
Function Real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace gantry::fault
