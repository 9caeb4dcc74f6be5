// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/module/looks_like.h"

#include <gtest/gtest.h>

#include "tests/unit/wasm/module/module_text.h"

namespace gantry::wasm {
namespace {

struct Known {
  std::string head;
  FileKind kind;
  const char* words;
};

std::string CompiledModule() {
  std::string head = "\177ELF\2\1\1\xc8";
  return head + std::string(56, '\0');
}

TEST(WasmLooksLike, SaysWhatAFileIs) {
  for (const Known& one : {
           Known{CoreHeader(), FileKind::kModule, "a WebAssembly module"},
           Known{ComponentHeader(), FileKind::kComponent, "a WebAssembly component"},
           Known{std::string("\0asm\x0a\0\1\0", 8), FileKind::kOther,
                 "WebAssembly of an unknown version (0a 00 01 00)"},
           Known{std::string("\0asm\1", 5), FileKind::kOther,
                 "WebAssembly that is cut off in its header"},
           Known{std::string("\177ELF\2\1\1\0", 8), FileKind::kNative, "an ELF program"},
           Known{"\177ELF", FileKind::kNative, "an ELF program"},
           Known{CompiledModule(), FileKind::kOther,
                 "a module that Wasmtime has compiled (.cwasm)"},
           Known{"#!/bin/sh\n", FileKind::kNative, "a script"},
           Known{"", FileKind::kOther, "empty"},
           Known{std::string(512, '\0'), FileKind::kOther, "zeros"},
           Known{"(module)", FileKind::kOther, "WebAssembly text"},
           Known{"\n ;; a comment\n;;\n  (component)", FileKind::kOther, "WebAssembly text"},
           Known{";;", FileKind::kOther, "text"},
           Known{"hello, world\n", FileKind::kOther, "text"},
           Known{"\x1f\x8b\x08", FileKind::kOther, "compressed by gzip"},
           Known{std::string("\1\2\3\0\5", 5), FileKind::kOther,
                 "data that begins with 01 02 03 00"},
       }) {
    EXPECT_EQ(LooksLike(one.head), one.words);
    EXPECT_EQ(FileKindOf(one.head), one.kind) << one.words;
  }
}

}  // namespace
}  // namespace gantry::wasm
