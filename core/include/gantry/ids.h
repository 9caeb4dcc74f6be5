// SPDX-License-Identifier: Apache-2.0
//
// Ids as types, so that a container's is never taken for an exec's. All follow
// containerd's rule for identifiers.
#pragma once

#include <compare>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <gantry/error.h>

namespace gantry {

/// Whether `id` is 1 to 76 characters of letters, digits, and single `.`, `_`
/// or `-` between them. Source: containerd 2.3.4, pkg/identifiers/validate.go.
bool IsValidId(std::string_view id);

/// A checked identifier. `Tag` keeps the kinds apart; the empty id is "none".
template <class Tag>
class Id {
 public:
  Id() = default;

  /// Errors: kInvalidArgument, naming the kind of id and at most its first 80 characters.
  static Result<Id> Parse(std::string_view text) {
    if (!IsValidId(text)) {
      return Fail(Code::kInvalidArgument,
                  "check {} '{}': not 1 to 76 letters, digits, '.', '_', '-'", Tag::kWhat,
                  text.substr(0, 80));
    }
    Id id;
    id.text_ = text;
    return id;
  }

  const std::string& str() const { return text_; }

  bool empty() const { return text_.empty(); }

  auto operator<=>(const Id&) const = default;

 private:
  std::string text_;
};

namespace ids {
struct Container {
  static constexpr std::string_view kWhat = "container id";
};

struct Exec {
  static constexpr std::string_view kWhat = "exec id";
};

struct Sandbox {
  static constexpr std::string_view kWhat = "sandbox id";
};

struct Namespace {
  static constexpr std::string_view kWhat = "namespace";
};
}  // namespace ids

using ContainerId = Id<ids::Container>;
/// Empty: the container's init process.
using ExecId = Id<ids::Exec>;
using SandboxId = Id<ids::Sandbox>;
using Namespace = Id<ids::Namespace>;

}  // namespace gantry

template <class Tag>
struct std::hash<gantry::Id<Tag>> {
  size_t operator()(const gantry::Id<Tag>& id) const noexcept {
    return std::hash<std::string>()(id.str());
  }
};
