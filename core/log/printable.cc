// SPDX-License-Identifier: Apache-2.0
#include "core/log/printable.h"

#include <cstddef>
#include <cstdint>

#include <gantry/format.h>

namespace gantry::log {
namespace {

uint8_t ByteAt(std::string_view text, size_t at) { return static_cast<uint8_t>(text[at]); }

/// How many bytes the character has that `text` begins with; 0: it is none of UTF-8.
size_t LengthOfCharacter(std::string_view text) {
  const uint8_t first = ByteAt(text, 0);
  size_t length = 1;
  uint32_t value = first;
  uint32_t least = 0;
  if (first >= 0xf0 && first < 0xf8) {
    length = 4;
    value = first & 0x07U;
    least = 0x10000;
  } else if (first >= 0xe0 && first < 0xf0) {
    length = 3;
    value = first & 0x0fU;
    least = 0x800;
  } else if (first >= 0xc0 && first < 0xe0) {
    length = 2;
    value = first & 0x1fU;
    least = 0x80;
  } else if (first >= 0x80) {
    return 0;
  }
  if (length > text.size()) {
    return 0;
  }
  for (size_t i = 1; i < length; ++i) {
    if ((ByteAt(text, i) & 0xc0U) != 0x80) {
      return 0;
    }
    value = (value << 6) | (ByteAt(text, i) & 0x3fU);
  }
  const bool is_surrogate = value >= 0xd800 && value < 0xe000;
  return value < least || value > 0x10ffff || is_surrogate ? 0 : length;
}

bool IsControl(std::string_view character) {
  const uint8_t first = ByteAt(character, 0);
  return first < 0x20 || first == 0x7f ||
         (character.size() == 2 && first == 0xc2 && ByteAt(character, 1) < 0xa0);
}

}  // namespace

void AppendPrintable(std::string& out, std::string_view text, size_t limit) {
  while (!text.empty() && out.size() < limit) {
    const size_t length = LengthOfCharacter(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    if (length != 0 && !IsControl(character)) {
      out += character;
    } else if (character == "\n") {
      out += "\\n";
    } else if (character == "\t") {
      out += "\\t";
    } else {
      for (size_t i = 0; i < character.size(); ++i) {
        out += Format("\\x{:02x}", ByteAt(character, i));
      }
    }
    text.remove_prefix(character.size());
  }
}

std::string Printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  AppendPrintable(out, text);
  return out;
}

}  // namespace gantry::log
