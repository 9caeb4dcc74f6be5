// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/wasmedge/sanitise.h"

#include <cstddef>
#include <cstdint>

#include "plugins/wasm/module/sections.h"

namespace gantry::wasm {
namespace {

constexpr size_t kHeaderBytes = 8;
constexpr char kCustom = 0;

// Of a module that was walked: every number is whole, and every section inside.
size_t EndOfSection(std::string_view module, size_t at) {
  constexpr unsigned kBitsOfByte = 7;
  size_t size = 0;
  unsigned shift = 0;
  uint8_t byte = 0;
  ++at;  // Its kind.
  do {
    byte = static_cast<uint8_t>(module[at++]);
    size |= static_cast<size_t>(byte & 0x7f) << shift;
    shift += kBitsOfByte;
  } while (byte >= 0x80);
  return at + size;
}

}  // namespace

Result<std::string> WithoutCustomSections(std::string_view module) {
  GANTRY_TRY(const Shape shape, WalkSections(module));
  if (shape.component) {
    return Fail(Code::kInvalidArgument, "it is a component, and no module");
  }
  std::string out(module.substr(0, kHeaderBytes));
  for (size_t at = kHeaderBytes; at < module.size();) {
    const size_t end = EndOfSection(module, at);
    if (module[at] != kCustom) {
      out += module.substr(at, end - at);
    }
    at = end;
  }
  return out;
}

}  // namespace gantry::wasm
