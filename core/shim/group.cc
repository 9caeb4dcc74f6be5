// SPDX-License-Identifier: Apache-2.0
//
// A scanner that finds the annotations in a config.json of any size without building its tree:
// each start of a container waits for it, and the shim has no JSON library. It does not judge the
// text: what it does not understand has no annotations, and the engine, which reads the file with
// all checks, says what is wrong with it.
#include "core/shim/group.h"

#include <array>
#include <cstddef>
#include <optional>

#include <gantry/toolkit/files/files.h>

namespace gantry::shim {
namespace {

constexpr size_t kMaxConfigBytes = 50U << 20;
constexpr std::string_view kGroup = "io.containerd.runc.v2.group";
constexpr std::string_view kSandbox = "io.kubernetes.cri.sandbox-id";
/// Only CRI sets it, and behind what a pod may name itself.
constexpr std::string_view kCriType = "io.kubernetes.cri.container-type";

/// Walks over JSON just far enough to find a key of an object. Nesting is counted, not
/// recursed into. Every step returns false where the text is not what it should be.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool Take(char wanted) {
    SkipSpace();
    if (at_ >= text_.size() || text_[at_] != wanted) {
      return false;
    }
    ++at_;
    return true;
  }

  /// A string's raw content, escapes and all.
  std::optional<std::string_view> String() {
    if (!Take('"')) {
      return std::nullopt;
    }
    const size_t begin = at_;
    while (true) {
      at_ = text_.find_first_of("\"\\", at_);
      if (at_ == std::string_view::npos) {
        at_ = text_.size();
        return std::nullopt;
      }
      if (text_[at_] == '"') {
        return text_.substr(begin, at_++ - begin);
      }
      at_ += 2;
    }
  }

  /// Any value.
  bool Skip() {
    int depth = 0;
    do {
      SkipSpace();
      if (at_ >= text_.size()) {
        return false;
      }
      const char c = text_[at_];
      if (c == '"') {
        if (!String()) {
          return false;
        }
        continue;
      }
      depth += c == '{' || c == '[' ? 1 : 0;
      depth -= c == '}' || c == ']' ? 1 : 0;
      ++at_;
      if (depth == 0 && c != '}' && c != ']') {
        SkipScalar();
      }
    } while (depth > 0);
    return depth == 0;
  }

  /// Moves to the next key of an object that `Take('{')` has entered; its value is next.
  std::optional<std::string_view> Key() {
    Take(',');
    const auto key = String();
    return key && Take(':') ? key : std::nullopt;
  }

 private:
  void SkipSpace() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").contains(text_[at_])) {
      ++at_;
    }
  }

  void SkipScalar() {
    while (at_ < text_.size() && !std::string_view(",}] \t\r\n").contains(text_[at_])) {
      ++at_;
    }
  }

  std::string_view text_;
  size_t at_ = 0;
};

std::string GroupAmong(Scanner& in) {
  std::string_view group;
  std::string_view sandbox;
  bool is_cri = false;
  while (const auto key = in.Key()) {
    const auto value = in.String();
    if (!value) {
      break;
    }
    if (*key == kGroup) {
      group = *value;
    } else if (*key == kSandbox) {
      sandbox = *value;
    } else if (*key == kCriType) {
      is_cri = true;
    }
  }
  // Where pods may bring annotations, one could name another's group.
  return std::string(group.empty() || is_cri ? sandbox : group);
}

}  // namespace

std::string GroupOf(std::string_view config_json) {
  Scanner in(config_json);
  if (!in.Take('{')) {
    return "";
  }
  while (const auto key = in.Key()) {
    if (*key == "annotations") {
      return in.Take('{') ? GroupAmong(in) : "";
    }
    if (!in.Skip()) {
      break;
    }
  }
  return "";
}

std::string GroupOfBundle(const std::string& bundle) {
  const auto config = ReadFile(bundle + "/config.json", kMaxConfigBytes);
  return config ? GroupOf(*config) : "";
}

}  // namespace gantry::shim
