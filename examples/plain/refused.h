// SPDX-License-Identifier: Apache-2.0
//
// What of a spec the example does not give. It is refused, not left out: docs/writing-a-backend.md
// has what goes wrong otherwise.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <gantry/error.h>
#include <gantry/json.h>

namespace plain {

using gantry::Code;
using gantry::Fail;
using gantry::Result;
using gantry::Status;
using Json = nlohmann::json;

/// What stands in an OCI process object, and is not given here.
inline Status CheckProcess(const Json& process) {
  const Json user = process.value("user", Json::object());
  for (const char* key : {"capabilities", "apparmorProfile", "selinuxLabel", "scheduler"}) {
    if (process.contains(key)) {
      return Fail(Code::kUnimplemented, "'process.{}': not by this backend", key);
    }
  }
  for (const char* key : {"additionalGids", "umask"}) {
    if (user.contains(key)) {
      return Fail(Code::kUnimplemented, "'process.user.{}': not by this backend", key);
    }
  }
  return {};
}

/// The same of a whole spec.
inline Status CheckSpec(const Json& spec) {
  GANTRY_CHECK_OK(CheckProcess(spec.value("process", Json::object())));
  if (spec.contains("hooks")) {
    return Fail(Code::kUnimplemented, "'hooks': not by this backend");
  }
  if (spec.value(Json::json_pointer("/root/readonly"), false)) {
    return Fail(Code::kUnimplemented, "'root.readonly': not by this backend");
  }
  const Json more = spec.value("linux", Json::object());
  for (const char* key : {"seccomp", "maskedPaths", "readonlyPaths", "sysctl", "uidMappings",
                          "gidMappings", "mountLabel", "devices"}) {
    if (more.contains(key)) {
      return Fail(Code::kUnimplemented, "'linux.{}': not by this backend", key);
    }
  }
  return {};
}

/// `process.rlimits`. Errors: kUnimplemented for one that is not known here.
inline Result<std::vector<std::pair<int, rlimit>>> LimitsOf(const Json& process) {
  constexpr std::pair<const char*, int> kKnown[] = {{"RLIMIT_NOFILE", RLIMIT_NOFILE},
                                                    {"RLIMIT_CORE", RLIMIT_CORE},
                                                    {"RLIMIT_NPROC", RLIMIT_NPROC},
                                                    {"RLIMIT_MEMLOCK", RLIMIT_MEMLOCK}};
  std::vector<std::pair<int, rlimit>> limits;
  for (const Json& one : process.value("rlimits", Json::array())) {
    const std::string type = one.value("type", std::string());
    const auto* const known =
        std::ranges::find(kKnown, type, [](const auto& k) { return k.first; });
    if (known == std::end(kKnown)) {
      return Fail(Code::kUnimplemented, "'process.rlimits': '{}': not by this backend", type);
    }
    limits.emplace_back(known->second,
                        rlimit{one.value("soft", rlim_t{0}), one.value("hard", rlim_t{0})});
  }
  return limits;
}

/// The one option.
inline Result<bool> IsUnconfined(const std::string& options_json) {
  const Json options = gantry::ReadJson(options_json);
  for (const auto& [key, value] : options.items()) {
    if (key != "unconfined" || !value.is_boolean()) {
      return Fail(Code::kInvalidArgument, "check option '{}': only 'unconfined', true or false",
                  key);
    }
  }
  return options.value("unconfined", false);
}

}  // namespace plain
