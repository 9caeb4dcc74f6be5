// SPDX-License-Identifier: Apache-2.0
//
// Of a build without a WebAssembly engine.
#include <ostream>

#include "plugins/wasm/tool/work.h"

namespace gantry::wasm::tool {
namespace {

bool None(std::ostream& err) {
  err << "gantryctl wasm: this gantry was built without a WebAssembly engine\n";
  return false;
}

}  // namespace

bool Compile(const Arguments& /*arguments*/, std::ostream& /*out*/, std::ostream& err) {
  return None(err);
}

bool Clean(const Arguments& /*arguments*/, std::ostream& /*out*/, std::ostream& err) {
  return None(err);
}

}  // namespace gantry::wasm::tool
