// SPDX-License-Identifier: Apache-2.0
//
// A backend's own options: YAML to JSON, with the line of every key.
#include <algorithm>
#include <cctype>

#include <gantry/format.h>
#include <gantry/toolkit/oci/json.h>

#include "core/config/yaml.h"

namespace gantry::config {
namespace {

// Aliases can make a short file long: what counts is the expanded size.
constexpr size_t kMostValues = 10'000;
constexpr int kDeepest = 16;

// As JSON writes numbers; "0755" and "1_000" stay text.
bool IsNumber(std::string_view text) {
  const auto digits = [&] {
    const size_t count = std::min(text.find_first_not_of("0123456789"), text.size());
    const bool good = count > 0;
    text.remove_prefix(count);
    return good;
  };
  const auto skip = [&](std::string_view any) {
    const bool found = !text.empty() && any.contains(text.front());
    text.remove_prefix(found ? 1 : 0);
    return found;
  };
  skip("-");
  const bool zero = text.starts_with('0');
  const std::string_view whole = text;
  if (!digits() || (zero && whole.size() - text.size() > 1)) {
    return false;
  }
  if (skip(".") && !digits()) {
    return false;
  }
  if (skip("eE")) {
    skip("+-");
    if (!digits()) {
      return false;
    }
  }
  return text.empty();
}

std::string ScalarJson(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  // "?" is the tag of a scalar without quotes.
  if (node.Tag() == "?" && (text == "true" || text == "false" || IsNumber(text))) {
    return text;
  }
  return oci::Quote(text);
}

class Converter {
 public:
  Converter(const Yaml& root, BackendOptions& out) : root_(root), out_(out) {}

  Status Convert(const YAML::Node& node, const std::string& key, int depth) {
    if (++values_ > kMostValues || depth > kDeepest) {
      return root_.Wrong(Format("more than {} values or {} levels", kMostValues, kDeepest));
    }
    if (node.IsMap()) {
      return Map(node, key, depth);
    }
    if (node.IsSequence()) {
      return Sequence(node, key, depth);
    }
    json_ += node.IsScalar() ? ScalarJson(node) : "null";
    return {};
  }

  std::string Take() { return std::move(json_); }

 private:
  Status Map(const YAML::Node& node, const std::string& parent, int depth) {
    json_ += '{';
    std::vector<std::string> seen;
    for (const auto& member : node) {
      const std::string& name = member.first.IsScalar() ? member.first.Scalar() : "";
      if (name.empty() || std::ranges::contains(seen, name)) {
        return root_.Wrong(Format("line {}: a key that is empty, not text, or given twice",
                                  member.first.Mark().line + 1));
      }
      json_ += seen.empty() ? "" : ",";
      seen.push_back(name);
      const std::string key = parent.empty() ? name : Format("{}.{}", parent, name);
      out_.lines.insert_or_assign(key, member.first.Mark().line + 1);
      json_ += oci::Quote(name) + ":";
      GANTRY_CHECK_OK(Convert(member.second, key, depth + 1));
    }
    json_ += '}';
    return {};
  }

  Status Sequence(const YAML::Node& node, const std::string& parent, int depth) {
    json_ += '[';
    size_t index = 0;
    for (const auto& item : node) {
      json_ += index == 0 ? "" : ",";
      const std::string key = Format("{}.{}", parent, index++);
      out_.lines.insert_or_assign(key, item.Mark().line + 1);
      GANTRY_CHECK_OK(Convert(item, key, depth + 1));
    }
    json_ += ']';
    return {};
  }

  const Yaml& root_;
  BackendOptions& out_;
  std::string json_;
  size_t values_ = 0;
};

}  // namespace

Status Yaml::ReadOptions(BackendOptions& out) const {
  if (node_.IsNull()) {
    return {};
  }
  if (!node_.IsMap()) {
    return Wrong("expected a map of keys and values");
  }
  Converter converter(*this, out);
  GANTRY_CHECK_OK(converter.Convert(node_, "", 0));
  out.json = converter.Take();
  return {};
}

}  // namespace gantry::config
