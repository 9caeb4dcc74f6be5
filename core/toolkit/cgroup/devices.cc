// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <utility>

#include <gantry/toolkit/cgroup/devices.h>

namespace gantry::cgroup {
namespace {

constexpr uint32_t kMemory = 1;
constexpr uint32_t kTerminals = 5;
constexpr uint32_t kPtys = 136;

DeviceRule Character(uint32_t major, std::optional<uint32_t> minor) {
  return {.allow = true, .type = 'c', .major = major, .minor = minor};
}

DeviceRule MakingOf(char type) {
  return {.allow = true, .type = type, .read = false, .write = false};
}

/// What runtimes let each container do.
/// Source: runc 1.3, libcontainer/specconv, AllowedDevices, as its containers' devices.list has
/// them; numbers: Linux 6.18, Documentation/admin-guide/devices.txt.
std::vector<DeviceRule> DefaultRules() {
  return {MakingOf('b'),
          MakingOf('c'),
          Character(kMemory, 3),     // /dev/null
          Character(kMemory, 5),     // zero
          Character(kMemory, 7),     // full
          Character(kMemory, 8),     // random
          Character(kMemory, 9),     // urandom
          Character(kTerminals, 0),  // tty
          Character(kTerminals, 2),  // ptmx
          Character(kPtys, std::nullopt)};
}

bool IsAboutAll(const DeviceRule& rule) {
  return rule.type == 'a' && !rule.major && !rule.minor && rule.read && rule.write && rule.mknod;
}

}  // namespace

DevicePolicy DevicePolicy::Of(const std::vector<DeviceRule>& rules) {
  DevicePolicy policy;
  for (const DeviceRule& rule : rules) {
    if (IsAboutAll(rule)) {
      policy = {.allow_others = rule.allow, .rules = {}};
      continue;
    }
    if (!rule.read && !rule.write && !rule.mknod) {
      continue;
    }
    for (const char type : {'b', 'c'}) {
      if (rule.type == type || rule.type == 'a') {
        policy.rules.push_back(rule);
        policy.rules.back().type = type;
      }
    }
  }
  std::ranges::move(DefaultRules(), std::back_inserter(policy.rules));
  return policy;
}

bool DevicePolicy::AllowsAll() const {
  return allow_others && std::ranges::all_of(rules, &DeviceRule::allow);
}

Status LimitDevices(const Cgroup& cgroup, const std::vector<DeviceRule>& rules) {
  if (rules.size() > kMostDeviceRules) {
    return Fail(Code::kInvalidArgument, "limit devices: {} rules, {} are allowed", rules.size(),
                kMostDeviceRules);
  }
  const DevicePolicy policy = DevicePolicy::Of(rules);
  if (cgroup.is_unified()) {
    return v2::LimitDevices(cgroup.unified().dir(), policy);
  }
  const auto tree = cgroup.v1().find("devices");
  if (tree != cgroup.v1().end() && !tree->second.is_root()) {
    return v1::LimitDevices(tree->second.dir(), policy);
  }
  if (policy.AllowsAll()) {
    return {};
  }
  return Fail(Code::kUnimplemented,
              "limit devices: the node has cgroup v1 without the controller 'devices'; mount it at "
              "/sys/fs/cgroup/devices");
}

}  // namespace gantry::cgroup
