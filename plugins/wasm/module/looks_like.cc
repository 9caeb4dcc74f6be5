// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/module/looks_like.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include <gantry/format.h>

namespace gantry::wasm {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kMagic = "\0asm"sv;
constexpr std::string_view kElf = "\177ELF"sv;
/// In an ELF header the operating system; Wasmtime marks what it has compiled with this number.
/// Source: Wasmtime 48, crates/environ/src/obj.rs, ELFOSABI_WASMTIME.
constexpr size_t kOsAbiOffset = 7;
constexpr unsigned char kWasmtimeOsAbi = 200;

struct Beginning {
  std::string_view bytes;
  std::string_view words;
};

constexpr std::array kBeginnings = {
    Beginning{"#!"sv, "a script"},
    Beginning{"\x1f\x8b"sv, "compressed by gzip"},
    Beginning{"\x28\xb5\x2f\xfd"sv, "compressed by zstd"},
    Beginning{"PK\x03\x04"sv, "a zip archive"},
    Beginning{"BC\xc0\xde"sv, "LLVM bitcode"},
    Beginning{"!<arch>\n"sv, "an archive of object files"},
};

std::string Hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    text += Format("{}{:02x}", text.empty() ? "" : " ", static_cast<uint8_t>(byte));
  }
  return text;
}

/// Behind white space and comments of a line each: `(module` or `(component`.
bool IsWasmText(std::string_view head) {
  while (true) {
    head.remove_prefix(std::min(head.find_first_not_of(" \t\r\n"), head.size()));
    if (!head.starts_with(";;")) {
      return head.starts_with("(module") || head.starts_with("(component");
    }
    head.remove_prefix(std::min(head.find('\n'), head.size()));
  }
}

bool IsText(std::string_view head) {
  return std::ranges::none_of(head, [](const char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < ' ' && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7f;
  });
}

std::string WasmOfVersion(std::string_view head) {
  const std::string_view version = head.substr(kMagic.size(), 4);
  if (version == "\1\0\0\0"sv) {
    return "a WebAssembly module";
  }
  if (version == "\x0d\0\1\0"sv) {
    return "a WebAssembly component";
  }
  return version.size() < 4 ? "WebAssembly that is cut off in its header"
                            : Format("WebAssembly of an unknown version ({})", Hex(version));
}

}  // namespace

FileKind FileKindOf(std::string_view head) {
  if (head.starts_with("\0asm\1\0\0\0"sv)) {
    return FileKind::kModule;
  }
  if (head.starts_with("\0asm\x0d\0\1\0"sv)) {
    return FileKind::kComponent;
  }
  const bool compiled = head.starts_with(kElf) && head.size() > kOsAbiOffset &&
                        static_cast<unsigned char>(head[kOsAbiOffset]) == kWasmtimeOsAbi;
  const bool native = head.starts_with("#!") || (head.starts_with(kElf) && !compiled);
  return native ? FileKind::kNative : FileKind::kOther;
}

std::string LooksLike(std::string_view head) {
  if (head.empty()) {
    return "empty";
  }
  if (head.starts_with(kMagic)) {
    return WasmOfVersion(head);
  }
  if (head.starts_with(kElf)) {
    return FileKindOf(head) == FileKind::kNative ? "an ELF program"
                                                 : "a module that Wasmtime has compiled (.cwasm)";
  }
  for (const Beginning& one : kBeginnings) {
    if (head.starts_with(one.bytes)) {
      return std::string(one.words);
    }
  }
  if (std::ranges::all_of(head, [](char c) { return c == '\0'; })) {
    return "zeros";
  }
  if (IsWasmText(head)) {
    return "WebAssembly text";
  }
  return IsText(head) ? "text" : Format("data that begins with {}", Hex(head.substr(0, 4)));
}

}  // namespace gantry::wasm
