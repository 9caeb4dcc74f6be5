// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/options.h"

#include <cstdlib>
#include <functional>
#include <string_view>

#include <nlohmann/json.hpp>

#include <gantry/json.h>
#include <gantry/toolkit/files/files.h>

namespace gantry::gvisor {
namespace {

using Json = nlohmann::json;
using Setter = std::function<Status(Options&, const std::string& key, const Json&)>;

std::unexpected<Error> WrongType(const std::string& key, std::string_view wanted,
                                 const Json& value) {
  return Fail(Code::kInvalidArgument, "check option '{}': must be {}, is {}", key, wanted,
              value.type_name());
}

Setter Text(std::string Options::* field) {
  return [field](Options& options, const std::string& key, const Json& value) -> Status {
    if (!value.is_string()) {
      return WrongType(key, "a string", value);
    }
    options.*field = value.get_ref<const std::string&>();
    return {};
  };
}

Setter AbsolutePath(std::string Options::* field) {
  return [field](Options& options, const std::string& key, const Json& value) -> Status {
    GANTRY_CHECK_OK(Text(field)(options, key, value));
    if (!(options.*field).starts_with('/')) {
      return Fail(Code::kInvalidArgument, "check option '{}': '{}' is no absolute path", key,
                  options.*field);
    }
    return {};
  };
}

Status SetBinary(Options& options, const std::string& key, const Json& value) {
  GANTRY_CHECK_OK(Text(&Options::binary_name)(options, key, value));
  const std::string& name = options.binary_name;
  if (name.empty() || (name[0] != '/' && name.contains('/'))) {
    return Fail(Code::kInvalidArgument,
                "check option '{}': '{}' is neither an absolute path nor a plain name", key, name);
  }
  return {};
}

Result<uint32_t> Number(const std::string& key, const Json& value, uint32_t least, uint32_t most) {
  if (!value.is_number_integer()) {
    return WrongType(key, "a whole number", value);
  }
  const auto number = value.get<int64_t>();
  if (number < least || number > most) {
    return Fail(Code::kInvalidArgument, "check option '{}': {} is not from {} to {}", key, number,
                least, most);
  }
  return static_cast<uint32_t>(number);
}

Status SetWarm(Options& options, const std::string& key, const Json& value) {
  GANTRY_TRY(options.warm, Number(key, value, 0, kMaxWarm));
  return {};
}

Status SetTimeout(Options& options, const std::string& key, const Json& value) {
  constexpr uint32_t kMostMs = 600'000;
  GANTRY_TRY(const uint32_t ms, Number(key, value, 1, kMostMs));
  options.timeout = std::chrono::milliseconds(ms);
  return {};
}

/// runsc's flags are text; the file of the other shim has them as strings throughout.
Status SetFlags(Options& options, const std::string& key, const Json& value) {
  if (!value.is_object()) {
    return WrongType(key, "a table of runsc's flags", value);
  }
  for (const auto& [name, flag] : value.items()) {
    if (!flag.is_string() && !flag.is_boolean() && !flag.is_number()) {
      return WrongType(Format("{}.{}", key, name), "a string, a number, true or false", flag);
    }
    options.runsc_config[name] = flag.is_string() ? flag.get<std::string>() : flag.dump();
  }
  return {};
}

Status SetImagePrefixes(Options& options, const std::string& key, const Json& value) {
  if (!value.is_array()) {
    return WrongType(key, "a list of directories", value);
  }
  options.image_prefixes.clear();
  for (const Json& one : value) {
    if (!one.is_string() || !one.get_ref<const std::string&>().starts_with('/')) {
      return Fail(Code::kInvalidArgument, "check option '{}': {} is no absolute path", key,
                  one.dump(-1, ' ', false, Json::error_handler_t::replace));
    }
    options.image_prefixes.push_back(one.get<std::string>());
  }
  return {};
}

Status Accept(Options&, const std::string&, const Json&) { return {}; }

const std::map<std::string, Setter, std::less<>>& Setters() {
  static const std::map<std::string, Setter, std::less<>> setters = {
      {"binary_name", SetBinary},
      {"root", AbsolutePath(&Options::root)},
      {"log_path", AbsolutePath(&Options::log_path)},
      {"log_level", Text(&Options::log_level)},
      {"runsc_config", SetFlags},
      {"image_prefixes", SetImagePrefixes},
      {"warm", SetWarm},
      {"timeout_ms", SetTimeout},
      // Of the other shim, without effect here: there is no shim of its own, pods are one
      // group always, and the fifos are the sentry's as they are.
      {"shim_cgroup", Accept},
      {"io_uid", Accept},
      {"io_gid", Accept},
      {"grouping", Accept},
      {"enable_hibernate_server", Accept},
  };
  return setters;
}

}  // namespace

Options DefaultOptions() {
  Options options;
  // Read once at start-up, before anyone could change the environment.
  const char* path = std::getenv("PATH");
  if (path != nullptr && *path != '\0') {
    options.path = path;
  }
  return options;
}

Result<Options> ParseOptions(const std::string& text, Options base,
                             std::vector<std::string>* unknown) {
  const Json parsed = ReadJson(text.empty() ? "{}" : text);
  if (parsed.is_null()) {
    return base;
  }
  if (!parsed.is_object()) {
    return Fail(Code::kInvalidArgument, "check the options of the gvisor backend: no JSON object");
  }
  for (const auto& [key, value] : parsed.items()) {
    const auto setter = Setters().find(key);
    if (setter != Setters().end()) {
      GANTRY_CHECK_OK(setter->second(base, key, value));
    } else if (unknown != nullptr) {
      unknown->push_back(key.substr(0, 80));
    } else {
      return Fail(Code::kInvalidArgument, "check option '{}': the gvisor backend has no such key",
                  key.substr(0, 80));
    }
  }
  return base;
}

std::map<std::string, std::string> RunscFlags(const Options& options) {
  std::map<std::string, std::string> flags = options.runsc_config;
  const bool used =
      !options.log_path.empty() && flags.emplace("debug-log", options.log_path).second;
  if (used && (options.log_level == "debug" || options.log_level == "trace")) {
    flags.emplace("debug", "true");
  }
  return flags;
}

Result<std::string> FindRunsc(const Options& options) {
  const std::string& name = options.binary_name;
  if (name.starts_with('/')) {
    if (IsExecutable(name)) {
      return name;
    }
    return Fail(Code::kFailedPrecondition,
                "find runsc '{}' (option 'binary_name'): no such executable file; install it or "
                "correct binary_name",
                name);
  }
  if (auto found = FindInPath(options.path, name)) {
    return found;
  }
  return Fail(Code::kFailedPrecondition,
              "find runsc '{}' (option 'binary_name'): not in PATH; install gVisor or set "
              "binary_name",
              name);
}

}  // namespace gantry::gvisor
