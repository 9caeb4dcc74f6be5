// SPDX-License-Identifier: Apache-2.0
//
// A look at the frame of a module or a component before a compiler sees it: every length in it
// stays inside, and what it declares is no more than a compiler should be asked for. What its
// instructions mean is the compiler's business.
// Source: WebAssembly core specification 2.0, 5.2.2 (LEB128) and 5.5; tags: exception handling
// proposal; component model, design/mvp/Binary.md.
#pragma once

#include <cstdint>
#include <string_view>

#include <gantry/error.h>

namespace gantry::wasm {

/// The most functions that a file may define, those of all modules in a component together.
inline constexpr uint32_t kMostFunctions = 100'000;
/// How deep components may lie in each other.
inline constexpr int kMostNested = 16;

/// What a file has; of a component all modules in it together.
struct Shape {
  bool component = false;
  uint32_t functions = 0;
  /// Of the bodies of functions.
  uint64_t code_bytes = 0;
};

/// `bytes`: the whole file. Reads each section's header, its count and, of code, each body's
/// length; in time that grows with the file alone. Errors: kInvalidArgument, with the section, its
/// offset in the file and what is wrong. Thread: any. Blocks: never.
Result<Shape> WalkSections(std::string_view bytes);

}  // namespace gantry::wasm
