// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include <gantry/toolkit/net/base64.h>

namespace gantry::net {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr unsigned kDigitBits = 6;
constexpr unsigned kDigitMask = 0x3f;

}  // namespace

std::string ToBase64(std::string_view bytes) {
  std::string text;
  uint32_t held = 0;
  unsigned bits = 0;
  for (const char byte : bytes) {
    held = held << 8 | static_cast<uint8_t>(byte);
    for (bits += 8; bits >= kDigitBits; bits -= kDigitBits) {
      text += kDigits[held >> (bits - kDigitBits) & kDigitMask];
    }
  }
  if (bits > 0) {
    text += kDigits[held << (kDigitBits - bits) & kDigitMask];
  }
  text.append((4 - text.size() % 4) % 4, '=');
  return text;
}

std::optional<std::string> FromBase64(std::string_view text) {
  if (text.size() % 4 != 0) {
    return std::nullopt;
  }
  for (int i = 0; i < 2 && text.ends_with('='); ++i) {
    text.remove_suffix(1);
  }
  std::string bytes;
  uint32_t held = 0;
  unsigned bits = 0;
  for (const char digit : text) {
    const size_t value = kDigits.find(digit);
    if (value == std::string_view::npos) {
      return std::nullopt;
    }
    held = held << kDigitBits | static_cast<uint32_t>(value);
    bits += kDigitBits;
    if (bits >= 8) {
      bits -= 8;
      bytes += static_cast<char>(held >> bits & 0xff);
    }
  }
  return bytes;
}

}  // namespace gantry::net
