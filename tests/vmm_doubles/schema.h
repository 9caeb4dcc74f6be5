// SPDX-License-Identifier: Apache-2.0
//
// What a VMM's API takes, as tables: which members an object has, of which type, which it must
// have. The tables are of our own making, from the projects' descriptions of their APIs.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace gantry::test {

enum class FieldType {
  kString,
  kInteger,
  kBoolean,
  /// One of the words in `detail`, with `|` between.
  kEnum,
  /// An object of the kind `detail`.
  kObject,
  /// An array of such.
  kList,
};

struct Field {
  std::string_view name;
  FieldType type;
  bool required = false;
  std::string_view detail = {};
  /// Of an integer.
  uint64_t least = 0;
};

using Schemas = std::map<std::string_view, std::vector<Field>>;

/// What is wrong with `value` as an object of that kind; empty: nothing. A member that the kind has
/// not is wrong, too.
std::string WhatIsWrong(const Schemas& schemas, std::string_view kind, const nlohmann::json& value);

}  // namespace gantry::test
