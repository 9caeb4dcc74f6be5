// SPDX-License-Identifier: Apache-2.0
//
// What a file of the cache begins with: what the rest of it is, and a hash of all. The rest is an
// artifact, or why there is none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <gantry/error.h>

#include "plugins/wasm/kind.h"
#include "plugins/wasm/module/sha256.h"

namespace gantry::wasm {

/// Rises with every change of the layout or of what is kept; files of others are not found.
inline constexpr uint32_t kEntryFormat = 1;

/// Of which module, and for which compiler and processor.
struct EntryId {
  /// SHA-256 of the module.
  Sha256Digest module{};
  /// SHA-256 of the compiler's line (gantry_wasm_compiler).
  Sha256Digest compiler{};

  /// 64 hexadecimal digits, which name the file.
  std::string Key() const;

  bool operator==(const EntryId&) const = default;
};

struct EntryHeader {
  static constexpr size_t kSize = 144;
  /// No artifact is larger.
  static constexpr uint64_t kMaxContent = uint64_t{1} << 31;
  /// Nor is a text that says why there is none.
  static constexpr uint64_t kMaxText = 4096;
  static constexpr int64_t kForEver = std::numeric_limits<int64_t>::max();

  EntryId id;
  /// kOk: an artifact. Else the code of the error whose message follows.
  Code failure = Code::kOk;
  Kind kind = Kind::kModule;
  /// Seconds since the epoch.
  int64_t made_at = 0;
  int64_t kept_until = kForEver;
  /// Bytes that follow.
  uint64_t length = 0;
  /// SHA-256 of all of the header before it and of what follows.
  Sha256Digest hash{};

  /// All but the hash, which is added to what `hash` has been told so far.
  void AddTo(Sha256& hash) const;
  std::string Encode() const;
  /// `bytes` may be anybody's. Errors: kDataLoss, with what is wrong. Blocks: never.
  static Result<EntryHeader> Decode(std::string_view bytes);

  bool operator==(const EntryHeader&) const = default;
};

}  // namespace gantry::wasm
