// SPDX-License-Identifier: Apache-2.0
#include "core/oci/bundle_spec.h"

#include <cerrno>
#include <utility>

#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/oci/json.h>
#include <gantry/toolkit/oci/resources.h>

#include "core/os/fs.h"

namespace gantry::oci {

Result<cgroup::CgroupResources> ResourcesOf(const Spec& spec, std::string_view file) {
  if (spec.resources_json.empty()) {
    return cgroup::CgroupResources();
  }
  GANTRY_TRY(const Json resources, Json::Parse(spec.resources_json, file, "/linux/resources"));
  return ReadResources(resources);
}

Result<std::vector<cgroup::DeviceRule>> DeviceRulesOf(const Spec& spec, std::string_view file) {
  if (spec.resources_json.empty()) {
    return std::vector<cgroup::DeviceRule>();
  }
  GANTRY_TRY(const Json resources, Json::Parse(spec.resources_json, file, "/linux/resources"));
  return ReadDeviceRules(resources);
}

Result<Spec> ReadSpec(const std::string& bundle, size_t max_bytes) {
  const std::string file = bundle + "/config.json";
  auto text = ReadFile(file, max_bytes);
  if (!text && (text.error().sys_errno == EISDIR || text.error().sys_errno == ELOOP)) {
    text.error().code = Code::kInvalidArgument;
  }
  if (!text) {
    return std::unexpected(std::move(text).error());
  }
  GANTRY_TRY(Spec spec, ParseSpec(std::move(*text), file));
  GANTRY_CHECK_OK(ResourcesOf(spec, file));
  return spec;
}

}  // namespace gantry::oci
