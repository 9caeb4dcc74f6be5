// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>

#include <gantry/toolkit/options/options.h>

namespace gantry::options {
namespace {

using Json = nlohmann::json;

}  // namespace

std::unexpected<Error> WrongType(const std::string& key, std::string_view wanted,
                                 const Json& value) {
  return Fail(Code::kInvalidArgument, "check option '{}': must be {}, is {}", key, wanted,
              value.type_name());
}

Result<std::string> TextOf(const std::string& key, const Json& value) {
  if (!value.is_string()) {
    return WrongType(key, "a string", value);
  }
  return value.get<std::string>();
}

Result<std::string> AbsolutePathOf(const std::string& key, const Json& value) {
  GANTRY_TRY(std::string path, TextOf(key, value));
  if (!path.starts_with('/')) {
    return Fail(Code::kInvalidArgument, "check option '{}': '{}' is no absolute path", key, path);
  }
  return path;
}

Result<std::string> ProgramOf(const std::string& key, const Json& value) {
  GANTRY_TRY(std::string program, TextOf(key, value));
  if (program.empty() || (program[0] != '/' && program.contains('/'))) {
    return Fail(Code::kInvalidArgument,
                "check option '{}': '{}' is neither an absolute path nor a plain name", key,
                program);
  }
  return program;
}

Result<bool> FlagOf(const std::string& key, const Json& value) {
  if (!value.is_boolean()) {
    return WrongType(key, "true or false", value);
  }
  return value.get<bool>();
}

Result<int64_t> NumberOf(const std::string& key, const Json& value, int64_t least, int64_t most) {
  if (!value.is_number_integer()) {
    return WrongType(key, "a whole number", value);
  }
  // What does not fit into the signed type is out of every range; it would be a small one there.
  const bool is_huge = value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX;
  const auto number = value.get<int64_t>();
  if (is_huge || number < least || number > most) {
    return Fail(Code::kInvalidArgument, "check option '{}': {} is not from {} to {}", key,
                value.dump(), least, most);
  }
  return number;
}

Result<Json> ObjectOf(std::string_view text, std::string_view backend) {
  Json parsed = ReadJson(text.empty() ? "{}" : text);
  if (parsed.is_null()) {
    return Json::object();
  }
  if (!parsed.is_object()) {
    return Fail(Code::kInvalidArgument, "check the options of the {} backend: no JSON object",
                backend);
  }
  return parsed;
}

std::unexpected<Error> UnknownKey(const std::string& key, std::string_view backend) {
  return Fail(Code::kInvalidArgument, "check option '{}': the {} backend has no such key",
              ShownKey(key), backend);
}

std::string ShownKey(const std::string& key) {
  constexpr size_t kMostShown = 80;
  return key.substr(0, kMostShown);
}

}  // namespace gantry::options
