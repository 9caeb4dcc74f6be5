// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include <nlohmann/json.hpp>

#include <gantry/format.h>
#include <gantry/json.h>

namespace gantry {
namespace {

std::string JsonPlace(std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte == 0 ? 0 : byte - 1, text.size()));
  const auto line = std::ranges::count(before, '\n') + 1;
  const size_t start = before.rfind('\n');
  const size_t column = before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1;
  return Format("line {}, column {}", line, column);
}

// The library's text begins with its own name and position, and may end with
// what it read last, which can be megabytes.
std::string JsonCause(std::string_view text) {
  constexpr size_t kLongest = 160;
  if (const size_t colon = text.find(": "); colon != std::string_view::npos) {
    text.remove_prefix(colon + 2);
  }
  std::string cause(text.substr(0, kLongest));
  // A cut may have split a character.
  std::ranges::replace_if(cause, [](char c) { return c < ' ' || c == '\x7f'; }, '?');
  return cause;
}

// Refuses what would cost memory or stack out of proportion, before it does.
Status CheckJsonShape(std::string_view text, std::string_view what, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    return Fail(Code::kInvalidArgument, "parse '{}': more than {} bytes", what, limits.bytes);
  }
  int depth = 0;
  size_t values = 1;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      i += c == '\\' ? 1 : 0;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      ++values;
      if (++depth > limits.depth) {
        return Fail(Code::kInvalidArgument, "parse '{}': {}: nested deeper than {} levels", what,
                    JsonPlace(text, i + 1), limits.depth);
      }
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',') {
      ++values;
    }
    if (values > limits.values) {
      return Fail(Code::kInvalidArgument, "parse '{}': more than {} values", what, limits.values);
    }
  }
  return {};
}

}  // namespace

Status CheckJson(std::string_view text, std::string_view what, const JsonLimits& limits) {
  GANTRY_CHECK_OK(CheckJsonShape(text, what, limits));
  if (!nlohmann::json::accept(text)) {
    return Fail(Code::kInvalidArgument, "parse '{}': it is no JSON", what);
  }
  return {};
}

Result<nlohmann::json> ParseJson(std::string_view text, std::string_view what,
                                 const JsonLimits& limits) {
  GANTRY_CHECK_OK(CheckJsonShape(text, what, limits));
  // The one seam to a library that throws.
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    return Fail(Code::kInvalidArgument, "parse '{}': {}: {}", what, JsonPlace(text, error.byte),
                JsonCause(error.what()));
  } catch (const nlohmann::json::exception& error) {
    return Fail(Code::kInvalidArgument, "parse '{}': {}", what, JsonCause(error.what()));
  }
}

nlohmann::json ReadJson(std::string_view text, const JsonLimits& limits) {
  if (!CheckJsonShape(text, "json", limits)) {
    return nlohmann::json(nlohmann::json::value_t::discarded);
  }
  return nlohmann::json::parse(text, nullptr, false);
}

nlohmann::ordered_json ReadOrderedJson(std::string_view text, const JsonLimits& limits) {
  if (!CheckJsonShape(text, "json", limits)) {
    return nlohmann::ordered_json(nlohmann::ordered_json::value_t::discarded);
  }
  return nlohmann::ordered_json::parse(text, nullptr, false);
}

}  // namespace gantry
