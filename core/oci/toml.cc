// SPDX-License-Identifier: Apache-2.0
#include "core/oci/toml.h"

#include <sstream>

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_UNRELEASED_FEATURES 0
#include <toml++/toml.h>

namespace gantry::oci {

Result<std::string> TomlToJson(std::string_view text, std::string_view what) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const toml::source_position at = parsed.error().source().begin;
    return Fail(Code::kInvalidArgument, "parse '{}': line {}, column {}: {}", what, at.line,
                at.column, parsed.error().description().substr(0, 200));
  }
  std::ostringstream json;
  json << toml::json_formatter(parsed.table());
  return std::move(json).str();
}

}  // namespace gantry::oci
