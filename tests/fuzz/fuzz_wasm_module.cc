// SPDX-License-Identifier: Apache-2.0
//
// A file of an image that is to be a module or a component.
#include "plugins/wasm/module/looks_like.h"
#include "plugins/wasm/module/sections.h"
#include "tests/fuzz/fuzz.h"

namespace gantry::fuzz {

void FuzzOne(std::string_view input) {
  const std::string_view head = input.substr(0, wasm::kHeadBytes);
  Require(!wasm::LooksLike(head).empty(), "there are words for everything");
  const auto shape = wasm::WalkSections(input);
  if (!shape) {
    Require(shape.error().code == Code::kInvalidArgument, "it is the input's fault");
    return;
  }
  Require(wasm::IsWasm(wasm::FileKindOf(head)), "it begins as one");
  Require(shape->functions <= wasm::kMostFunctions, "functions are bounded");
  Require(shape->code_bytes <= input.size(), "code is a part of the file");
}

}  // namespace gantry::fuzz
