// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/container/pod_record.h"

#include <nlohmann/json.hpp>

#include <gantry/json.h>

namespace gantry::vmm {
namespace {

using Json = nlohmann::json;

}  // namespace

std::string PodRecord::ToJson() const {
  const Json json = {{"root", root},
                     {"cgroups", cgroups},
                     {"netns", netns},
                     {"oom_kills", oom_kills},
                     {"machine", machine}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<PodRecord> PodRecord::FromJson(const std::string& text) {
  const Json json = ReadJson(text, kSpecJson);
  PodRecord record;
  // The one seam to a library that throws: a record that was damaged.
  try {
    json.at("root").get_to(record.root);
    json.at("cgroups").get_to(record.cgroups);
    json.at("netns").get_to(record.netns);
    json.at("oom_kills").get_to(record.oom_kills);
    json.at("machine").get_to(record.machine);
  } catch (const Json::exception& e) {
    return Fail(Code::kDataLoss, "read the state of a sandbox: {}", e.what());
  }
  return record;
}

}  // namespace gantry::vmm
