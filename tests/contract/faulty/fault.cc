// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/faulty/fault.h"

#include <utility>

#include <nlohmann/json.hpp>

#include <gantry/json.h>

namespace gantry::faulty {
namespace {

using Json = nlohmann::json;

constexpr std::pair<const char*, Fault> kFaults[] = {
    {"", Fault::kNone},
    {"saves-nothing", Fault::kSavesNothing},
    {"throws", Fault::kThrows},
    {"binds-nothing", Fault::kBindsNothing},
    {"execs-on-the-node", Fault::kExecsOnTheNode},
    {"holds-streams", Fault::kHoldsStreams},
    {"confines-little", Fault::kConfinesLittle},
    {"is-root", Fault::kIsRoot},
    {"loses-execs", Fault::kLosesExecs},
    {"loses-adopted", Fault::kLosesAdopted},
    {"forgets-starts", Fault::kForgetsStarts},
    {"gives-up", Fault::kGivesUp},
    {"deletes-nothing", Fault::kDeletesNothing},
    {"shares-mounts", Fault::kSharesMounts},
    {"has-no-cgroups", Fault::kHasNoCgroups},
    {"limits-no-devices", Fault::kLimitsNoDevices},
    {"ignores-hooks", Fault::kIgnoresHooks},
};

void SpoilProcess(Fault fault, Json& process) {
  if (fault == Fault::kIsRoot) {
    process["user"] = {{"uid", 0}, {"gid", 0}};
  } else if (fault == Fault::kConfinesLittle && process.contains("capabilities")) {
    for (const char* set : {"effective", "permitted", "inheritable", "ambient"}) {
      process["capabilities"].erase(set);
    }
  }
}

}  // namespace

Result<Fault> FaultOf(const std::string& options_json) {
  const Json options = ReadJson(options_json);
  const std::string name =
      options.is_object() ? options.value("Fault", std::string()) : std::string();
  for (const auto& [called, fault] : kFaults) {
    if (name == called) {
      return fault;
    }
  }
  return Fail(Code::kInvalidArgument, "check option 'Fault': '{}' is none of them", name);
}

std::string SpoiledSpec(Fault fault, const std::string& spec_json) {
  Json spec = ReadJson(spec_json, kSpecJson);
  if (!spec.is_object()) {
    return spec_json;
  }
  SpoilProcess(fault, spec["process"]);
  if (fault == Fault::kConfinesLittle) {
    spec["linux"].erase("seccomp");
  } else if (fault == Fault::kHasNoCgroups) {
    spec["linux"].erase("resources");
  } else if (fault == Fault::kIgnoresHooks) {
    spec.erase("hooks");
  } else if (fault == Fault::kLimitsNoDevices) {
    spec["linux"]["resources"]["devices"] = {{{"allow", true}, {"access", "rwm"}}};
  }
  return spec.dump();
}

std::string SpoiledProcess(Fault fault, const std::string& process_json) {
  Json process = ReadJson(process_json, kSpecJson);
  SpoilProcess(fault, process);
  return process.dump();
}

}  // namespace gantry::faulty
