// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include <gantry/error.h>
#include <gantry/process.h>

namespace gantry::fakes {

/// Of a stored descriptor.
inline constexpr size_t kMaxName = 64;

/// Keeps it, as the core would.
inline Status KeepBlob(std::string text, std::string& blob, size_t most = kMaxSaved) {
  if (text.size() > most) {
    return Fail(Code::kInvalidArgument, "save {} bytes: {} at most", text.size(), most);
  }
  blob = std::move(text);
  return {};
}

}  // namespace gantry::fakes
