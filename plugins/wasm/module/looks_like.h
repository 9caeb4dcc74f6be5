// SPDX-License-Identifier: Apache-2.0
//
// What a file of an image is, by its first bytes. The name of a file says nothing of it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gantry::wasm {

/// As many bytes of a file tell, or all of a shorter one.
inline constexpr size_t kHeadBytes = 512;

enum class FileKind {
  /// A core module, version 1. Source: WebAssembly core specification 2.0, 5.5.16.
  kModule,
  /// A component. Source: component model, design/mvp/Binary.md: version 0xd, layer 1.
  kComponent,
  /// What the kernel executes: an ELF file, or one that begins with `#!`.
  kNative,
  kOther,
};

/// Thread: any. Blocks: never.
FileKind FileKindOf(std::string_view head);

inline bool IsWasm(FileKind kind) {
  return kind == FileKind::kModule || kind == FileKind::kComponent;
}

/// What it looks like, in words that complete "it is ...": "an ELF program", "WebAssembly text",
/// "empty". Thread: any. Blocks: never.
std::string LooksLike(std::string_view head);

}  // namespace gantry::wasm
