// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/storage/guest_mounts.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <gantry/json.h>

#include "plugins/vmm/protocol/annotations.h"

namespace gantry::vmm {
namespace {

using nlohmann::json;

/// What of a mount's options is about the bind in the guest; the others are a file system's, which
/// is mounted already, or about ids, which are mapped already.
bool StaysOption(std::string_view option) {
  constexpr auto kWords = std::to_array<std::string_view>(
      {"bind",   "rbind",      "ro",          "rw",      "rro",      "rrw",         "nosuid",
       "suid",   "nodev",      "dev",         "noexec",  "exec",     "rnosuid",     "rsuid",
       "rnodev", "rdev",       "rnoexec",     "rexec",   "private",  "rprivate",    "slave",
       "rslave", "unbindable", "runbindable", "noatime", "relatime", "strictatime", "nodiratime"});
  return std::ranges::contains(kWords, option);
}

void Bind(json& mount, const std::string& source) {
  std::vector<std::string> options;
  for (const json& option : mount.value("options", json::array())) {
    if (option.is_string() && StaysOption(option.get_ref<const std::string&>())) {
      options.push_back(option.get<std::string>());
    }
  }
  if (std::ranges::none_of(options, [](const std::string& option) {
        return option == "bind" || option == "rbind";
      })) {
    options.emplace_back("bind");
  }
  mount["type"] = "bind";
  mount["source"] = source;
  mount["options"] = std::move(options);
  mount.erase("uidMappings");
  mount.erase("gidMappings");
}

/// A number of the node's is another disk in the guest, perhaps another container's.
bool IsOfNodesDisk(const json& rule) {
  return rule.is_object() && rule.value("type", json()) == "b" &&
         (rule.contains("major") || rule.contains("minor"));
}

void RemoveDiskRules(json& spec) {
  const json::json_pointer place("/linux/resources/devices");
  if (!spec.contains(place) || !spec[place].is_array()) {
    return;
  }
  json kept = json::array();
  for (json& rule : spec[place]) {
    if (!IsOfNodesDisk(rule)) {
      kept.push_back(std::move(rule));
    }
  }
  spec[place] = std::move(kept);
}

void Annotate(json& spec, const std::map<std::string, std::string>& disks) {
  constexpr std::string_view kPrefix = protocol::kDeviceAnnotation;
  json kept = json::object();
  const json all = spec.value("annotations", json::object());
  for (const auto& [key, value] : all.items()) {
    if (!key.starts_with(kPrefix)) {
      kept[key] = value;
    }
  }
  for (const auto& [path, file] : disks) {
    kept[std::string(kPrefix) + path] = file;
  }
  spec["annotations"] = std::move(kept);
}

}  // namespace

Result<std::string> WithGuestMounts(const std::string& spec_json, const GuestMounts& mounts) {
  GANTRY_TRY(json spec, ParseJson(spec_json, "config.json", kSpecJson));
  if (!spec.is_object() || !spec["root"].is_object()) {
    return Fail(Code::kInvalidArgument, "check 'config.json': it has no root");
  }
  spec["root"]["path"] = mounts.root;
  for (const auto& [place, source] : mounts.binds) {
    json& all = spec["mounts"];
    if (!all.is_array() || place >= all.size()) {
      return Fail(Code::kInvalidArgument, "check 'config.json': it has no mount {}", place);
    }
    Bind(all[place], source);
  }
  RemoveDiskRules(spec);
  Annotate(spec, mounts.disks);
  return spec.dump();
}

}  // namespace gantry::vmm
