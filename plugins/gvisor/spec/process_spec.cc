// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/spec/process_spec.h"

#include <linux/capability.h>

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include <gantry/json.h>
#include <gantry/toolkit/oci/words.h>

namespace gantry::gvisor {
namespace {

using Json = nlohmann::json;

const Json& Member(const Json& object, const char* name) {
  static const Json none;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() ? *found : none;
}

std::vector<std::string> Texts(const Json& array) {
  std::vector<std::string> texts;
  for (const Json& one : array.is_array() ? array : Json::array()) {
    if (one.is_string()) {
      texts.push_back(one.get<std::string>());
    }
  }
  return texts;
}

uint32_t Number(const Json& number) {
  return number.is_number_unsigned() ? number.get<uint32_t>() : 0;
}

Result<uint64_t> Mask(const Json& names) {
  uint64_t mask = 0;
  for (const std::string& name : Texts(names)) {
    const std::optional<int> number = oci::CapabilityOf(name);
    if (!number) {
      return Fail(Code::kInvalidArgument, "read a process: '{}' is no capability",
                  name.substr(0, 80));
    }
    mask |= uint64_t{1} << *number;
  }
  return mask;
}

constexpr std::array<std::pair<const char*, uint64_t Capabilities::*>, 5> kSets = {{
    {"permitted", &Capabilities::permitted},
    {"inheritable", &Capabilities::inheritable},
    {"effective", &Capabilities::effective},
    {"bounding", &Capabilities::bounding},
    {"ambient", &Capabilities::ambient},
}};

Result<Capabilities> ReadCapabilities(const Json& all) {
  Capabilities to;
  for (const auto& [name, set] : kSets) {
    GANTRY_TRY(to.*set, Mask(Member(all, name)));
  }
  return to;
}

/// All that some process of a container may ever come to.
uint64_t UnionOf(const Capabilities& rights) {
  uint64_t all = 0;
  for (const auto& [name, set] : kSets) {
    all |= rights.*set;
  }
  return all;
}

Capabilities WithinPlace(Capabilities asked, const ProcessPlace& place) {
  constexpr uint64_t kNetRaw = uint64_t{1} << CAP_NET_RAW;
  const uint64_t most = UnionOf(place.rights) & ~(place.net_raw ? 0 : kNetRaw);
  for (const auto& [name, set] : kSets) {
    asked.*set &= most;
  }
  return asked;
}

}  // namespace

Capabilities RightsIn(const std::string& spec_json) {
  const Json spec = ReadJson(spec_json, kSpecJson);
  return ReadCapabilities(Member(Member(spec, "process"), "capabilities")).value_or(Capabilities());
}

bool AllowsRawSockets(const std::string& conf_json) {
  return Member(ReadJson(conf_json, kSpecJson), "EnableRaw") == true;
}

Result<ExecArgs> ReadProcess(const std::string& process_json, const ProcessPlace& place) {
  const Json process = ReadJson(process_json, kSpecJson);
  ExecArgs args;
  args.container = place.container;
  args.argv = Texts(Member(process, "args"));
  if (args.argv.empty()) {
    return Fail(Code::kInvalidArgument, "read a process: it has no args");
  }
  args.env = Texts(Member(process, "env"));
  const Json& cwd = Member(process, "cwd");
  args.cwd = cwd.is_string() && !cwd.get<std::string>().empty() ? cwd.get<std::string>() : "/";
  const Json& user = Member(process, "user");
  args.uid = Number(Member(user, "uid"));
  args.gid = Number(Member(user, "gid"));
  const Json& groups = Member(user, "additionalGids");
  for (const Json& group : groups.is_array() ? groups : Json::array()) {
    args.additional_gids.push_back(Number(group));
  }
  args.no_new_privileges = Member(process, "noNewPrivileges") == true;
  args.terminal = Member(process, "terminal") == true;
  Capabilities asked = place.rights;
  if (const Json& all = Member(process, "capabilities"); all.is_object()) {
    GANTRY_TRY(asked, ReadCapabilities(all));
  }
  args.capabilities = WithinPlace(asked, place);
  return args;
}

}  // namespace gantry::gvisor
