// SPDX-License-Identifier: Apache-2.0
//
// What a WebAssembly program is run as.
#pragma once

#include <optional>
#include <string_view>

namespace gantry::wasm {

enum class Kind {
  /// A core module, for WASI preview 1.
  kModule,
  /// A component that exports wasi:cli/run.
  kCommand,
  /// A component that exports wasi:http/incoming-handler.
  kProxy,
};

constexpr std::string_view KindName(Kind kind) {
  switch (kind) {
    case Kind::kCommand:
      return "command";
    case Kind::kProxy:
      return "proxy";
    case Kind::kModule:
      break;
  }
  return "module";
}

constexpr std::optional<Kind> KindOf(std::string_view name) {
  for (const Kind kind : {Kind::kModule, Kind::kCommand, Kind::kProxy}) {
    if (KindName(kind) == name) {
      return kind;
    }
  }
  return std::nullopt;
}

}  // namespace gantry::wasm
