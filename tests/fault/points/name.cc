// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/points/name.h"

#include <algorithm>

namespace gantry::fault {
namespace {

constexpr std::string_view kUnfinished = ".tmp";

bool HasDigit(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view LastPart(std::string_view path) {
  while (path.ends_with('/')) {
    path.remove_suffix(1);
  }
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

Name::Name(std::string_view verb, std::string_view object) {
  Append(verb);
  if (!object.empty()) {
    Append(" ");
    Append(object);
  }
}

void Name::Append(std::string_view part) {
  const size_t count = std::min(part.size(), kMaxName - size_);
  std::copy_n(part.data(), count, bytes_.data() + size_);
  size_ += count;
}

std::string_view ObjectOf(std::string_view path) {
  const std::string_view last = LastPart(path);
  if (last.ends_with(kUnfinished)) {
    // NAME.RANDOM.tmp
    const std::string_view name = last.substr(0, last.size() - kUnfinished.size());
    const std::string_view final_name = name.substr(0, name.rfind('.'));
    return final_name == "gantry.record" ? "gantry.record.tmp" : "*.tmp";
  }
  if (!HasDigit(last)) {
    return last;
  }
  return path.starts_with("/sys/fs/cgroup/") ? "cgroup" : "*";
}

}  // namespace gantry::fault
