// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/spec/process_spec.h"

#include <linux/capability.h>

#include <array>
#include <cstdint>
#include <utility>

#include <nlohmann/json.hpp>

#include <gantry/json.h>

namespace gantry::gvisor {
namespace {

constexpr std::array kSets = {&oci::Capabilities::permitted, &oci::Capabilities::inheritable,
                              &oci::Capabilities::effective, &oci::Capabilities::bounding,
                              &oci::Capabilities::ambient};

oci::Capabilities WithinPlace(oci::Capabilities asked, const ProcessPlace& place) {
  // All that some process of the container may ever come to.
  uint64_t most = 0;
  for (const auto set : kSets) {
    most |= place.rights.*set;
  }
  if (!place.net_raw) {
    most &= ~(uint64_t{1} << CAP_NET_RAW);
  }
  for (const auto set : kSets) {
    asked.*set &= most;
  }
  return asked;
}

}  // namespace

oci::Capabilities RightsIn(const std::string& spec_json) {
  const auto spec = oci::ParseSpec(spec_json, "config.json");
  if (!spec) {
    return {};
  }
  oci::Capabilities rights = spec->process.capabilities.value_or(oci::Capabilities());
  return rights.unknown.empty() ? rights : oci::Capabilities();
}

bool AllowsRawSockets(const std::string& conf_json) {
  const nlohmann::json conf = ReadJson(conf_json, kSpecJson);
  return conf.is_object() && conf.contains("EnableRaw") && conf["EnableRaw"] == true;
}

Result<ExecArgs> ReadProcess(const std::string& process_json, const ProcessPlace& place) {
  GANTRY_TRY(oci::ProcessSpec process, oci::ParseProcess(process_json));
  oci::Capabilities asked = process.capabilities.value_or(place.rights);
  if (!asked.unknown.empty()) {
    return Fail(Code::kInvalidArgument, "read a process: '{}' is no capability",
                asked.unknown.front().substr(0, 80));
  }
  ExecArgs args;
  args.container = place.container;
  args.argv = std::move(process.args);
  args.env = std::move(process.env);
  args.cwd = std::move(process.cwd);
  args.uid = process.user.uid;
  args.gid = process.user.gid;
  args.additional_gids = std::move(process.user.additional_gids);
  args.no_new_privileges = process.no_new_privileges;
  args.terminal = process.terminal;
  args.capabilities = WithinPlace(std::move(asked), place);
  return args;
}

}  // namespace gantry::gvisor
