// SPDX-License-Identifier: Apache-2.0
#include <gantry/ids.h>

namespace gantry {
namespace {

constexpr size_t kMaxIdLength = 76;

bool IsLetterOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool IsSeparator(char c) { return c == '.' || c == '_' || c == '-'; }

}  // namespace

bool IsValidId(std::string_view id) {
  if (id.empty() || id.size() > kMaxIdLength || !IsLetterOrDigit(id.back())) {
    return false;
  }
  bool after_separator = true;
  for (const char c : id) {
    if (IsSeparator(c) ? after_separator : !IsLetterOrDigit(c)) {
      return false;
    }
    after_separator = IsSeparator(c);
  }
  return true;
}

}  // namespace gantry
