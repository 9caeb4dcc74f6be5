// SPDX-License-Identifier: Apache-2.0
//
// Modules and components put together byte by byte, also wrong ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gantry::wasm {

inline std::string Leb(uint32_t value) {
  std::string text;
  do {
    const auto low = static_cast<char>(value & 0x7f);
    value >>= 7;
    text += static_cast<char>(value == 0 ? low : low | static_cast<char>(0x80));
  } while (value != 0);
  return text;
}

/// More bytes than a number of 32 bits may have.
inline std::string OversizedLeb() { return "\x80\x80\x80\x80\x80" + std::string(1, '\0'); }

inline std::string CoreHeader() { return {"\0asm\1\0\0\0", 8}; }

inline std::string ComponentHeader() { return {"\0asm\x0d\0\1\0", 8}; }

inline std::string SectionOf(uint8_t id, std::string_view content) {
  return std::string(1, static_cast<char>(id)) + Leb(static_cast<uint32_t>(content.size())) +
         std::string(content);
}

/// `_start` does nothing.
inline std::string SmallModule() {
  return CoreHeader() + SectionOf(1, {"\1\x60\0\0", 4}) + SectionOf(3, {"\1\0", 2}) +
         SectionOf(7, {"\1\6_start\0\0", 10}) + SectionOf(10, {"\1\2\0\x0b", 4});
}

}  // namespace gantry::wasm
