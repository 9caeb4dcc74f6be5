// SPDX-License-Identifier: Apache-2.0
#include "core/setup/config_file.h"

#include <algorithm>
#include <iterator>

#include <nlohmann/json.hpp>

#include <gantry/format.h>
#include <gantry/json.h>

#include "core/oci/toml.h"

namespace gantry::setup {
namespace {

using nlohmann::json;

/// A dump of containerd's is 20 kB.
constexpr size_t kMostBytes = size_t{4} << 20;

Result<json> Parse(std::string_view text, std::string_view path) {
  if (text.size() > kMostBytes) {
    return Fail(Code::kInvalidArgument, "parse '{}': longer than {} bytes", path, kMostBytes);
  }
  GANTRY_TRY(const std::string document, oci::TomlToJson(text, path));
  return ParseJson(document, path);
}

/// The table at the end of these keys; empty where one of them is not there.
json TableAt(const json& document, std::initializer_list<const char*> keys) {
  const json* at = &document;
  for (const char* const key : keys) {
    const auto next = at->is_object() ? at->find(key) : at->end();
    if (!at->is_object() || next == at->end()) {
      return json::object();
    }
    at = &*next;
  }
  return at->is_object() ? *at : json::object();
}

/// The strings of an array; others in it are left out.
std::vector<std::string> StringsOf(const json& document, const char* key) {
  std::vector<std::string> strings;
  const auto array = document.find(key);
  if (array != document.end() && array->is_array()) {
    for (const json& one : *array) {
      if (one.is_string()) {
        strings.push_back(one.get<std::string>());
      }
    }
  }
  return strings;
}

constexpr const char* kCri[] = {"io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"};

void RemoveRuntimes(json& document, const std::vector<std::string>& runtimes) {
  for (const char* const cri : kCri) {
    const json::json_pointer at("/plugins/" + std::string(cri) + "/containerd/runtimes");
    if (!document.contains(at) || !document[at].is_object()) {
      continue;
    }
    for (const std::string& runtime : runtimes) {
      document[at].erase(runtime);
    }
  }
  if (document.contains("proxy_plugins") && document["proxy_plugins"].is_object()) {
    document["proxy_plugins"].erase("gantry");
  }
  // Which files were read is no setting.
  document.erase("imports");
}

/// A table without anything says as much as none.
void RemoveEmpty(json& table) {
  for (auto at = table.begin(); at != table.end();) {
    if (at->is_object()) {
      RemoveEmpty(*at);
    }
    at = at->is_object() && at->empty() ? table.erase(at) : std::next(at);
  }
}

/// Where two documents differ first, as keys with dots.
std::string Difference(const json& before, const json& after) {
  if (!before.is_object() || !after.is_object()) {
    return "";
  }
  for (const json* const one : {&before, &after}) {
    for (const auto& [key, value] : one->items()) {
      const bool both = before.contains(key) && after.contains(key);
      if (both && before[key] == after[key]) {
        continue;
      }
      const std::string below = both ? Difference(before[key], after[key]) : "";
      return below.empty() ? key : Format("{}.{}", key, below);
    }
  }
  return "";
}

}  // namespace

Result<ConfigFile> ParseConfig(std::string_view text, std::string_view path) {
  GANTRY_TRY(const json document, Parse(text, path));
  ConfigFile config;
  if (const auto version = document.find("version"); version != document.end()) {
    if (!version->is_number_integer() || *version < 0 || *version > 1000) {
      return Fail(Code::kInvalidArgument, "parse '{}': `version` is no version", path);
    }
    config.version = version->get<int>();
  }
  config.imports = StringsOf(document, "imports");
  config.cri_disabled =
      std::ranges::any_of(StringsOf(document, "disabled_plugins"), [](const std::string& plugin) {
        return plugin == "cri" || plugin == "io.containerd.grpc.v1.cri" ||
               plugin == "io.containerd.cri.v1.runtime";
      });
  for (const char* const cri : kCri) {
    const json runtimes = TableAt(document, {"plugins", cri, "containerd", "runtimes"});
    for (const auto& [name, runtime] : runtimes.items()) {
      const bool typed = runtime.is_object() && runtime.contains("runtime_type") &&
                         runtime["runtime_type"].is_string();
      config.runtimes[name] = typed ? runtime["runtime_type"].get<std::string>() : "";
    }
  }
  const json plugins = TableAt(document, {"proxy_plugins"});
  for (const auto& [name, plugin] : plugins.items()) {
    config.proxy_plugins.push_back(name);
  }
  return config;
}

Status SameBut(std::string_view before, std::string_view after,
               const std::vector<std::string>& runtimes) {
  GANTRY_TRY(json was, Parse(before, "containerd config dump"));
  GANTRY_TRY(json is, Parse(after, "containerd config dump"));
  RemoveRuntimes(was, runtimes);
  RemoveRuntimes(is, runtimes);
  RemoveEmpty(was);
  RemoveEmpty(is);
  if (was != is) {
    return Fail(
        Code::kFailedPrecondition,
        "containerd would have another '{}' with the runtimes of gantry; nothing was changed",
        Difference(was, is));
  }
  return {};
}

}  // namespace gantry::setup
