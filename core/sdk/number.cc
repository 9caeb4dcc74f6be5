// SPDX-License-Identifier: Apache-2.0
#include <charconv>

#include <gantry/number.h>

namespace gantry {

Result<int64_t> ParseNumber(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    return Fail(Code::kInvalidArgument, "read a number: '{}' is none", text.substr(0, 40));
  }
  return value;
}

}  // namespace gantry
