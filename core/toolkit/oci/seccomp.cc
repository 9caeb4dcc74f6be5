// SPDX-License-Identifier: Apache-2.0
//
// `linux.seccomp` of config.json. Which system calls and architectures there are is said by the
// libseccomp of whoever loads the filter. Source: OCI runtime-spec 1.2, config-linux.md.
#include <algorithm>
#include <utility>

#include "core/toolkit/oci/sections.h"

namespace gantry::oci {
namespace {

constexpr std::string_view kActions[] = {
    "SCMP_ACT_KILL",  "SCMP_ACT_KILL_PROCESS", "SCMP_ACT_KILL_THREAD",
    "SCMP_ACT_TRAP",  "SCMP_ACT_ERRNO",        "SCMP_ACT_TRACE",
    "SCMP_ACT_ALLOW", "SCMP_ACT_LOG",          "SCMP_ACT_NOTIFY"};

constexpr std::string_view kOperators[] = {"SCMP_CMP_NE",       "SCMP_CMP_LT", "SCMP_CMP_LE",
                                           "SCMP_CMP_EQ",       "SCMP_CMP_GE", "SCMP_CMP_GT",
                                           "SCMP_CMP_MASKED_EQ"};

// A system call has six. Source: seccomp(2).
constexpr uint32_t kArguments = 6;

Status ReadAction(const Json& action, std::string& out) {
  GANTRY_CHECK_OK(action.Read(out));
  if (!std::ranges::contains(kActions, out)) {
    return action.WrongValue("not an action of seccomp");
  }
  return {};
}

Status ReadArgument(const Json& item, Seccomp::Argument& out) {
  GANTRY_CHECK_OK(item.CheckObject());
  GANTRY_CHECK_OK(item["index"].Read(out.index));
  if (out.index >= kArguments) {
    return item["index"].WrongValue("not an argument of a system call");
  }
  GANTRY_CHECK_OK(item["value"].Read(out.value));
  GANTRY_CHECK_OK(item["valueTwo"].Read(out.value_two));
  GANTRY_CHECK_OK(item["op"].Read(out.op));
  if (!std::ranges::contains(kOperators, out.op)) {
    return item["op"].WrongValue("not an operator of seccomp");
  }
  return {};
}

Status ReadRule(const Json& item, Seccomp::Rule& out) {
  GANTRY_CHECK_OK(item.CheckObject());
  GANTRY_CHECK_OK(item["names"].Read(out.names));
  if (out.names.empty()) {
    return item["names"].Wrong("no system call");
  }
  GANTRY_CHECK_OK(ReadAction(item["action"], out.action));
  GANTRY_CHECK_OK(item["errnoRet"].Read(out.errno_ret));
  GANTRY_TRY(const auto arguments, item["args"].Items());
  out.args.resize(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    GANTRY_CHECK_OK(ReadArgument(arguments[i], out.args[i]));
  }
  return {};
}

}  // namespace

Status ReadSeccomp(const Json& part, std::optional<Seccomp>& out) {
  GANTRY_CHECK_OK(part.CheckObject());
  if (part.absent()) {
    return {};
  }
  Seccomp seccomp;
  GANTRY_CHECK_OK(ReadAction(part["defaultAction"], seccomp.default_action));
  GANTRY_CHECK_OK(part["defaultErrnoRet"].Read(seccomp.default_errno_ret));
  GANTRY_CHECK_OK(part["architectures"].Read(seccomp.architectures));
  GANTRY_CHECK_OK(part["flags"].Read(seccomp.flags));
  GANTRY_CHECK_OK(part["listenerPath"].Read(seccomp.listener_path));
  GANTRY_CHECK_OK(part["listenerMetadata"].Read(seccomp.listener_metadata));
  GANTRY_TRY(const auto rules, part["syscalls"].Items());
  seccomp.rules.resize(rules.size());
  for (size_t i = 0; i < rules.size(); ++i) {
    GANTRY_CHECK_OK(ReadRule(rules[i], seccomp.rules[i]));
  }
  out = std::move(seccomp);
  return {};
}

}  // namespace gantry::oci
