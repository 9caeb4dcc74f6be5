// SPDX-License-Identifier: Apache-2.0
//
// devices.allow and devices.deny of cgroup v1. Its list has what differs from the rule for all
// others, and an entry goes only by its exact numbers: what this list cannot say is refused.
// Source: Linux 6.18, Documentation/admin-guide/cgroup-v1/devices.rst; tried: to deny one of a
// class that is allowed is answered with success and does nothing.
#include <algorithm>
#include <string>
#include <vector>

#include <gantry/format.h>
#include <gantry/toolkit/cgroup/devices.h>

#include "core/toolkit/cgroup/update.h"

namespace gantry::cgroup::v1 {
namespace {

std::string NumberText(std::optional<uint32_t> number) {
  return number ? std::to_string(*number) : "*";
}

std::string TextOf(const DeviceRule& rule) {
  return Format("{} {}:{} {}{}{}", rule.type, NumberText(rule.major), NumberText(rule.minor),
                rule.read ? "r" : "", rule.write ? "w" : "", rule.mknod ? "m" : "");
}

bool IsSameDevice(const DeviceRule& one, const DeviceRule& other) {
  return one.type == other.type && one.major == other.major && one.minor == other.minor;
}

bool Meets(std::optional<uint32_t> one, std::optional<uint32_t> other) {
  return !one || !other || *one == *other;
}

bool AreAboutTheSame(const DeviceRule& one, const DeviceRule& other) {
  return one.type == other.type && Meets(one.major, other.major) && Meets(one.minor, other.minor) &&
         ((one.read && other.read) || (one.write && other.write) || (one.mknod && other.mknod));
}

/// A rule takes something of an earlier one away, and not all that it is about.
Status CheckCanBeSaid(const DevicePolicy& policy) {
  for (auto rule = policy.rules.begin(); rule != policy.rules.end(); ++rule) {
    const auto hides = [&](const DeviceRule& earlier) {
      return earlier.allow != rule->allow && !IsSameDevice(earlier, *rule) &&
             AreAboutTheSame(earlier, *rule);
    };
    // What is denied by mistake harms nobody but the container.
    if (rule->allow || policy.allow_others) {
      continue;
    }
    if (const auto hidden = std::find_if(policy.rules.begin(), rule, hides); hidden != rule) {
      return Fail(Code::kInvalidArgument,
                  "limit devices: cgroup v1 cannot deny '{}' where '{}' is allowed before it",
                  TextOf(*rule), TextOf(*hidden));
    }
  }
  return {};
}

}  // namespace

Status LimitDevices(const std::string& dir, const DevicePolicy& policy) {
  GANTRY_CHECK_OK(CheckCanBeSaid(policy));
  const std::string allow = dir + "/devices.allow";
  const std::string deny = dir + "/devices.deny";
  GANTRY_CHECK_OK(SetCgroupValue(deny, "a"));
  if (policy.allow_others) {
    GANTRY_CHECK_OK(SetCgroupValue(allow, "a"));
  }
  for (const DeviceRule& rule : policy.rules) {
    GANTRY_CHECK_OK(SetCgroupValue(rule.allow ? allow : deny, TextOf(rule)));
  }
  return {};
}

}  // namespace gantry::cgroup::v1
