// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/options.h"

#include <cstdlib>
#include <utility>

#include <nlohmann/json.hpp>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/options/options.h>

namespace gantry::gvisor {
namespace {

using Json = nlohmann::json;

/// runsc's flags are text; the file of the other shim has them as strings throughout.
Status SetFlags(Options& options, const std::string& key, const Json& value) {
  if (!value.is_object()) {
    return options::WrongType(key, "a table of runsc's flags", value);
  }
  for (const auto& [name, flag] : value.items()) {
    if (!flag.is_string() && !flag.is_boolean() && !flag.is_number()) {
      return options::WrongType(Format("{}.{}", key, name), "a string, a number, true or false",
                                flag);
    }
    options.runsc_config[name] = flag.is_string() ? flag.get<std::string>() : flag.dump();
  }
  return {};
}

const OptionTable<Options>& Table() {
  constexpr uint32_t kMostMs = 600'000;
  static const OptionTable<Options> table = {
      {"binary_name", options::Program(&Options::binary_name)},
      {"root", options::AbsolutePath(&Options::root)},
      {"log_path", options::AbsolutePath(&Options::log_path)},
      {"log_level", options::Text(&Options::log_level)},
      {"runsc_config", SetFlags},
      {"image_prefixes", options::AbsolutePaths(&Options::image_prefixes)},
      {"warm", options::Number(&Options::warm, 0, kMaxWarm)},
      {"timeout_ms", options::Duration(&Options::timeout, kMostMs)},
      // Of the other shim, without effect here: there is no shim of its own, pods are one
      // group always, and the fifos are the sentry's as they are.
      {"shim_cgroup", options::Ignored<Options>()},
      {"io_uid", options::Ignored<Options>()},
      {"io_gid", options::Ignored<Options>()},
      {"grouping", options::Ignored<Options>()},
      {"enable_hibernate_server", options::Ignored<Options>()},
  };
  return table;
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
  return options::Read(text, std::move(base), Table(), "gvisor", unknown);
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
