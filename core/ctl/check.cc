// SPDX-License-Identifier: Apache-2.0
//
// Checks a gantry.yaml or a plugin as the engine would, with the engine's own code. A plugin is
// loaded by another process (`gantryd --probe-plugin`), since what it runs while it is loaded may
// crash.
#include "core/ctl/check.h"

#include <filesystem>
#include <system_error>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "core/backend/backends.h"
#include "core/backend/plugin_host.h"
#include "core/ctl/output.h"

namespace gantry::ctl {
namespace {

constexpr std::string_view kPrefix = "libgantry_";
constexpr std::string_view kSuffix = ".so";

std::string NameOf(const std::string& path) {
  std::string_view file = path;
  file.remove_prefix(file.rfind('/') + 1);
  if (file.starts_with(kPrefix) && file.ends_with(kSuffix)) {
    file.remove_prefix(kPrefix.size());
    file.remove_suffix(kSuffix.size());
    return std::string(file);
  }
  return "";
}

}  // namespace

bool LooksLikePlugin(const std::string& path) {
  constexpr size_t kMostOfAnything = size_t{64} << 20;
  if (path.ends_with(kSuffix)) {
    return true;
  }
  const auto bytes = ReadFile(path, kMostOfAnything);
  return bytes && bytes->starts_with(
                      "\x7f"
                      "ELF");
}

Result<std::string> CheckConfig(const config::Config& config, const Node& node) {
  Table table({"HANDLER", "BACKEND", "OPTIONS", "CHECKED"});
  for (const auto& [name, handler] : config.handlers) {
    const auto backend = node.find_backend(handler.backend);
    if (!backend) {
      const Error& why = backend.error();
      return Fail(why.code, "{}: handler '{}': {}", config::PlaceOf(config, handler, why.message),
                  name, why.message);
    }
    GANTRY_CHECK_OK(backend::CheckOptions(config, name, handler, **backend));
    table.Add({name == config.default_handler ? name + " (default)" : name, handler.backend,
               handler.options.json, "yes"});
  }
  return Format("{}: in order\n\n{}", config.file, table.str());
}

Result<std::string> CheckPlugin(const std::string& probe, const std::string& path,
                                const std::string& name, const config::Config& config) {
  const std::string called = name.empty() ? NameOf(path) : name;
  if (called.empty()) {
    return Fail(Code::kInvalidArgument,
                "check plugin '{}': not called libgantry_NAME.so; say its name with --name", path);
  }
  std::error_code error;
  const std::string absolute = std::filesystem::absolute(path, error);
  if (error) {
    return FailErrno(error.value(), "check plugin '{}'", path);
  }
  const auto backend = config.backends.find(called);
  GANTRY_TRY(const std::string found,
             backend::PluginHost::ProbeLoad(
                 probe, absolute, called,
                 backend == config.backends.end() ? "{}" : backend->second.options.json));
  return Format("{}: in order: {}\n", path, found);
}

}  // namespace gantry::ctl
