// SPDX-License-Identifier: Apache-2.0
#include <gantry/toolkit/json/json_end.h>

namespace gantry {

size_t JsonEnd::Feed(std::string_view bytes) {
  size_t taken = 0;
  while (taken < bytes.size() && (state_ == State::kBefore || state_ == State::kInside)) {
    Take(bytes[taken++]);
  }
  return taken;
}

void JsonEnd::Take(char c) {
  if (state_ == State::kBefore) {
    if (c == '{') {
      state_ = State::kInside;
      depth_ = 1;
    } else if (!std::string_view(" \t\r\n").contains(c)) {
      state_ = State::kNoObject;
    }
    return;
  }
  if (in_string_) {
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      in_string_ = false;
    }
    return;
  }
  if (c == '"') {
    in_string_ = true;
  } else if (c == '{' || c == '[') {
    ++depth_;
  } else if ((c == '}' || c == ']') && --depth_ == 0) {
    state_ = State::kEnded;
  }
}

}  // namespace gantry
