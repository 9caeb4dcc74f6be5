// SPDX-License-Identifier: Apache-2.0
#include "tests/vmm_doubles/schema.h"

#include <algorithm>

namespace gantry::test {
namespace {

using Json = nlohmann::json;

bool IsOneOf(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const std::string_view one = words.substr(0, words.find('|'));
    if (one == word) {
      return true;
    }
    words.remove_prefix(std::min(one.size() + 1, words.size()));
  }
  return false;
}

std::string OfList(const Schemas& schemas, const Field& field, const Json& value) {
  if (!value.is_array()) {
    return "is no array";
  }
  for (const Json& one : value) {
    if (std::string wrong = WhatIsWrong(schemas, field.detail, one); !wrong.empty()) {
      return wrong;
    }
  }
  return {};
}

std::string OfField(const Schemas& schemas, const Field& field, const Json& value) {
  switch (field.type) {
    case FieldType::kString:
      return value.is_string() ? "" : "is no string";
    case FieldType::kInteger:
      return value.is_number_unsigned() && value.get<uint64_t>() >= field.least
                 ? ""
                 : "is no such number";
    case FieldType::kBoolean:
      return value.is_boolean() ? "" : "is no boolean";
    case FieldType::kEnum:
      return value.is_string() && IsOneOf(field.detail, value.get<std::string>())
                 ? ""
                 : "is none of " + std::string(field.detail);
    case FieldType::kObject:
      return WhatIsWrong(schemas, field.detail, value);
    case FieldType::kList:
      return OfList(schemas, field, value);
  }
  return "has no type";
}

}  // namespace

std::string WhatIsWrong(const Schemas& schemas, std::string_view kind, const Json& value) {
  const auto schema = schemas.find(kind);
  if (schema == schemas.end()) {
    return "there is no kind " + std::string(kind);
  }
  if (!value.is_object()) {
    return std::string(kind) + " is no object";
  }
  for (const Field& field : schema->second) {
    const auto member = value.find(field.name);
    if (member == value.end()) {
      if (field.required) {
        return std::string(kind) + " has no " + std::string(field.name);
      }
      continue;
    }
    if (const std::string wrong = OfField(schemas, field, *member); !wrong.empty()) {
      return std::string(kind) + "." + std::string(field.name) + " " + wrong;
    }
  }
  for (const auto& [name, member] : value.items()) {
    if (std::ranges::none_of(schema->second,
                             [&name](const Field& field) { return field.name == name; })) {
      return std::string(kind) + " has an unknown field " + name;
    }
  }
  return {};
}

}  // namespace gantry::test
