// SPDX-License-Identifier: Apache-2.0
#include <cstddef>

#include <gantry/toolkit/json/json_member.h>

namespace gantry {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

/// Takes what is up to the next of `ends` that is in no string and in no array or object, and
/// that character.
std::string_view TakeUpTo(std::string_view& text, std::string_view ends) {
  size_t depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      i += c == '\\' ? 1 : 0;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (depth == 0 && ends.contains(c)) {
      const std::string_view taken = text.substr(0, i);
      text.remove_prefix(i + 1);
      return taken;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      depth -= depth > 0 ? 1 : 0;
    }
  }
  const std::string_view taken = text;
  text = {};
  return taken;
}

}  // namespace

std::string_view JsonMember(std::string_view object, std::string_view name) {
  std::string_view left = Trimmed(object);
  if (!left.starts_with('{')) {
    return {};
  }
  left.remove_prefix(1);
  std::string_view found;
  while (!left.empty()) {
    std::string_view key = Trimmed(TakeUpTo(left, ":}"));
    const std::string_view value = Trimmed(TakeUpTo(left, ",}"));
    if (key.size() == name.size() + 2 && key.substr(1, name.size()) == name) {
      found = value;
    }
  }
  return found;
}

}  // namespace gantry
