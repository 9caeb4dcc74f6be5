// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include <gantry/error.h>

namespace gantry::fakes {

/// What the core keeps for a backend of one sandbox or container.
inline constexpr size_t kMaxBlob = size_t{64} << 10;
/// And for one process.
inline constexpr size_t kMaxProcessBlob = size_t{4} << 10;
/// Of a stored descriptor.
inline constexpr size_t kMaxName = 64;

/// Keeps it, as the core would.
inline Status KeepBlob(std::string text, std::string& blob, size_t most = kMaxBlob) {
  if (text.size() > most) {
    return Fail(Code::kInvalidArgument, "save {} bytes: {} at most", text.size(), most);
  }
  blob = std::move(text);
  return {};
}

}  // namespace gantry::fakes
