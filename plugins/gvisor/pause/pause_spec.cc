// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/pause/pause_spec.h"

#include <nlohmann/json.hpp>

namespace gantry::gvisor {
namespace {

using Json = nlohmann::json;

/// As Kubernetes' own pause image has it. Source: kubernetes, build/pause/Dockerfile.
constexpr int kUser = 65535;

Json Process() {
  const Json none = Json::array();
  return {{"terminal", false},
          {"user", {{"uid", kUser}, {"gid", kUser}}},
          {"args", {"/pause"}},
          {"cwd", "/"},
          {"capabilities",
           {{"bounding", none}, {"effective", none}, {"permitted", none}, {"ambient", none}}},
          {"noNewPrivileges", true}};
}

Json Namespaces(const std::optional<std::string>& network) {
  Json all = Json::array();
  for (const char* type : {"pid", "ipc", "uts", "mount"}) {
    all.push_back({{"type", type}});
  }
  if (network) {
    Json one = {{"type", "network"}};
    if (!network->empty()) {
      one["path"] = *network;
    }
    all.push_back(std::move(one));
  }
  return all;
}

Json Mappings(const std::vector<IdMapping>& mappings) {
  Json all = Json::array();
  for (const IdMapping& one : mappings) {
    all.push_back(
        {{"hostID", one.host_id}, {"containerID", one.container_id}, {"size", one.length}});
  }
  return all;
}

}  // namespace

std::string PauseSpec(const PauseSpecRequest& request) {
  Json spec = {{"ociVersion", "1.1.0"},
               {"process", Process()},
               {"root", {{"path", request.root}, {"readonly", true}}},
               {"mounts", Json::array()},
               {"annotations", request.annotations},
               {"linux", {{"namespaces", Namespaces(request.network)}}}};
  if (!request.hostname.empty()) {
    spec["hostname"] = request.hostname;
  }
  if (!request.sysctls.empty()) {
    spec["linux"]["sysctl"] = request.sysctls;
  }
  if (!request.uids.empty()) {
    spec["linux"]["uidMappings"] = Mappings(request.uids);
    spec["linux"]["gidMappings"] = Mappings(request.gids);
  }
  return spec.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gantry::gvisor
