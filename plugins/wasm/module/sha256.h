// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <nettle/sha2.h>

namespace gantry::wasm {

using Sha256Digest = std::array<uint8_t, 32>;

/// SHA-256 of what is added, in order. Thread: one.
class Sha256 {
 public:
  Sha256() { sha256_init(&state_); }

  void Add(std::string_view bytes) {
    sha256_update(&state_, bytes.size(), reinterpret_cast<const uint8_t*>(bytes.data()));
  }

  /// Of all so far; it begins anew.
  Sha256Digest Finish() {
    Sha256Digest digest;
    sha256_digest(&state_, digest.size(), digest.data());
    return digest;
  }

 private:
  sha256_ctx state_ = {};
};

inline Sha256Digest Sha256Of(std::string_view bytes) {
  Sha256 hash;
  hash.Add(bytes);
  return hash.Finish();
}

/// In lower-case hexadecimal digits.
inline std::string HexOf(const Sha256Digest& digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(digest.size() * 2);
  for (const uint8_t byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 0xF];
  }
  return text;
}

}  // namespace gantry::wasm
