// SPDX-License-Identifier: Apache-2.0
//
// A backend's options: one JSON object, key by key into a struct. Each error names the key, that of
// a value in a table as 'outer.inner', what it must be and what it is.
//
//   const OptionTable<Options> kTable = {
//       {"root", options::AbsolutePath(&Options::root)},
//       {"warm", options::Number(&Options::warm, 0, 64)},
//       {"grouping", options::Ignored<Options>()},
//   };
//   Result<Options> parsed = options::Read(json, DefaultOptions(), kTable, "gvisor", &unknown);
//
// Thread: any. Blocks: never.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <gantry/error.h>
#include <gantry/json.h>

namespace gantry {

/// Sets what one key means. Errors: kInvalidArgument; what it has set by then is thrown away.
template <class Options>
using OptionSetter =
    std::function<Status(Options&, const std::string& key, const nlohmann::json& value)>;

template <class Options>
using OptionTable = std::map<std::string, OptionSetter<Options>, std::less<>>;

namespace options {

/// "check option 'KEY': must be WANTED, is a number".
std::unexpected<Error> WrongType(const std::string& key, std::string_view wanted,
                                 const nlohmann::json& value);

/// What a value has to be; the others below put it into a field.
Result<std::string> TextOf(const std::string& key, const nlohmann::json& value);
/// An absolute path.
Result<std::string> AbsolutePathOf(const std::string& key, const nlohmann::json& value);
/// A program: an absolute path, or a name to be looked up in PATH.
Result<std::string> ProgramOf(const std::string& key, const nlohmann::json& value);
Result<bool> FlagOf(const std::string& key, const nlohmann::json& value);
Result<int64_t> NumberOf(const std::string& key, const nlohmann::json& value, int64_t least,
                         int64_t most);

/// A JSON object; empty text and `null` are an empty one. `backend` is for the error.
Result<nlohmann::json> ObjectOf(std::string_view text, std::string_view backend);
/// "check option 'KEY': the BACKEND backend has no such key", of a long key the beginning.
std::unexpected<Error> UnknownKey(const std::string& key, std::string_view backend);
/// As an unknown key is named to whoever asks for them.
std::string ShownKey(const std::string& key);

template <class Options>
OptionSetter<Options> Text(std::string Options::* field) {
  return [field](Options& options, const std::string& key, const nlohmann::json& value) -> Status {
    GANTRY_TRY(options.*field, TextOf(key, value));
    return {};
  };
}

template <class Options>
OptionSetter<Options> AbsolutePath(std::string Options::* field) {
  return [field](Options& options, const std::string& key, const nlohmann::json& value) -> Status {
    GANTRY_TRY(options.*field, AbsolutePathOf(key, value));
    return {};
  };
}

/// The same; an empty one is none, or, with `kKeeps`, leaves the field as it was.
enum class EmptyPath { kSets, kKeeps };

template <class Options>
OptionSetter<Options> PathOrNone(std::string Options::* field, EmptyPath empty = EmptyPath::kSets) {
  return [field, empty](Options& options, const std::string& key,
                        const nlohmann::json& value) -> Status {
    if (value != "") {
      GANTRY_TRY(options.*field, AbsolutePathOf(key, value));
    } else if (empty == EmptyPath::kSets) {
      (options.*field).clear();
    }
    return {};
  };
}

template <class Options>
OptionSetter<Options> Program(std::string Options::* field) {
  return [field](Options& options, const std::string& key, const nlohmann::json& value) -> Status {
    GANTRY_TRY(options.*field, ProgramOf(key, value));
    return {};
  };
}

/// The same; an empty one is none.
template <class Options>
OptionSetter<Options> ProgramOrNone(std::string Options::* field) {
  return [field](Options& options, const std::string& key, const nlohmann::json& value) -> Status {
    (options.*field).clear();
    if (value != "") {
      GANTRY_TRY(options.*field, ProgramOf(key, value));
    }
    return {};
  };
}

template <class Options>
OptionSetter<Options> Flag(bool Options::* field) {
  return [field](Options& options, const std::string& key, const nlohmann::json& value) -> Status {
    GANTRY_TRY(options.*field, FlagOf(key, value));
    return {};
  };
}

/// From `least` to `most`, both included.
template <class Options>
OptionSetter<Options> Number(uint32_t Options::* field, uint32_t least, uint32_t most) {
  return [field, least, most](Options& options, const std::string& key,
                              const nlohmann::json& value) -> Status {
    GANTRY_TRY(const int64_t number, NumberOf(key, value, least, most));
    options.*field = static_cast<uint32_t>(number);
    return {};
  };
}

/// Milliseconds, at least one. `Field`: std::chrono::milliseconds, or an optional of it.
template <class Options, class Field>
OptionSetter<Options> Duration(Field Options::* field, uint32_t most_ms) {
  return [field, most_ms](Options& options, const std::string& key,
                          const nlohmann::json& value) -> Status {
    GANTRY_TRY(const int64_t ms, NumberOf(key, value, 1, most_ms));
    options.*field = std::chrono::milliseconds(ms);
    return {};
  };
}

/// Directories, each an absolute path.
template <class Options>
OptionSetter<Options> AbsolutePaths(std::vector<std::string> Options::* field) {
  return [field](Options& options, const std::string& key, const nlohmann::json& value) -> Status {
    if (!value.is_array()) {
      return WrongType(key, "a list of directories", value);
    }
    std::vector<std::string> paths;
    for (const nlohmann::json& one : value) {
      GANTRY_TRY(std::string path, AbsolutePathOf(key, one));
      paths.push_back(std::move(path));
    }
    options.*field = std::move(paths);
    return {};
  };
}

/// A key that is known and has no effect.
template <class Options>
OptionSetter<Options> Ignored() {
  return [](Options&, const std::string&, const nlohmann::json&) { return Status(); };
}

/// `base` with what the object `text` sets; empty text sets nothing. Unknown keys are put into
/// `unknown`; without `unknown` they are an error. `backend` is its name, for errors.
/// Errors: kInvalidArgument naming the key.
template <class Options>
Result<Options> Read(std::string_view text, Options base, const OptionTable<Options>& table,
                     std::string_view backend, std::vector<std::string>* unknown) {
  GANTRY_TRY(const nlohmann::json object, ObjectOf(text, backend));
  for (const auto& [key, value] : object.items()) {
    const auto setter = table.find(key);
    if (setter != table.end()) {
      GANTRY_CHECK_OK(setter->second(base, key, value));
    } else if (unknown != nullptr) {
      unknown->push_back(ShownKey(key));
    } else {
      return UnknownKey(key, backend);
    }
  }
  return base;
}

}  // namespace options
}  // namespace gantry
