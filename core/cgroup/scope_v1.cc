// SPDX-License-Identifier: Apache-2.0
//
// Source: systemd 247, org.freedesktop.systemd1(5), systemd.resource-control(5); runc 1.1,
// libcontainer/cgroups/systemd/v1.go and common.go.
#include "core/cgroup/scope_v1.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <ranges>
#include <string>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/cgroup/counters.h>

namespace gantry::cgroup::v1 {
namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kSecondUs = 1'000'000;
/// The kernel's, where none is given.
constexpr uint64_t kPeriodUs = 100'000;
/// systemd keeps a percentage without a fraction.
constexpr uint64_t kPercentUs = 10'000;

/// -1 is none.
uint64_t LimitOf(int64_t limit) { return limit < 0 ? kNoLimit : static_cast<uint64_t>(limit); }

uint64_t EachSecond(int64_t quota_us, uint64_t period_us) {
  const uint64_t quota = LimitOf(quota_us);
  if (quota > kNoLimit / kSecondUs) {
    return kNoLimit;
  }
  const uint64_t period = period_us == 0 ? kPeriodUs : period_us;
  return (quota * kSecondUs / period + kPercentUs - 1) / kPercentUs * kPercentUs;
}

std::string RightsOf(const DeviceRule& rule) {
  return Format("{}{}{}", rule.read ? "r" : "", rule.write ? "w" : "", rule.mknod ? "m" : "");
}

/// The name of a major number below `heading` in /proc/devices; empty: it has none.
std::string GroupOf(std::string_view groups, std::string_view heading, uint32_t major) {
  bool below = false;
  for (const auto part : std::views::split(groups, '\n')) {
    std::string_view line(part);
    if (line.ends_with(':')) {
      below = line == heading;
      continue;
    }
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const size_t blank = line.find(' ');
    if (below && blank != line.npos && NumberAlone(line.substr(0, blank)) == major) {
      return std::string(line.substr(blank + 1));
    }
  }
  return {};
}

/// As DeviceAllow= has it; empty: it cannot be said there.
std::string DeviceOf(const DeviceRule& rule, std::string_view groups) {
  const bool block = rule.type == 'b';
  const char* const type = block ? "block" : "char";
  if (!rule.major) {
    return Format("{}-*", type);
  }
  if (rule.minor) {
    return Format("/dev/{}/{}:{}", type, *rule.major, *rule.minor);
  }
  const std::string group =
      GroupOf(groups, block ? "Block devices:" : "Character devices:", *rule.major);
  return group.empty() ? "" : Format("{}-{}", type, group);
}

}  // namespace

std::vector<os::UnitProperty> ScopeProperties(const CgroupResources& resources) {
  std::vector<os::UnitProperty> out;
  if (const int64_t limit = resources.memory.limit_bytes.value_or(0); limit != 0) {
    out.push_back({.name = "MemoryLimit", .value = LimitOf(limit)});
  }
  if (const uint64_t shares = resources.cpu.shares.value_or(0); shares != 0) {
    out.push_back({.name = "CPUShares", .value = shares});
  }
  if (const int64_t quota = resources.cpu.quota_us.value_or(0); quota != 0) {
    out.push_back({.name = "CPUQuotaPerSecUSec",
                   .value = EachSecond(quota, resources.cpu.period_us.value_or(0))});
  }
  if (const uint64_t weight = resources.blkio_weight.value_or(0); weight != 0) {
    out.push_back({.name = "BlockIOWeight", .value = weight});
  }
  if (const int64_t limit = resources.pids_limit.value_or(0); limit != 0) {
    out.push_back({.name = "TasksMax", .value = LimitOf(limit)});
  }
  return out;
}

std::vector<os::UnitProperty> DeviceProperties(const std::vector<DeviceRule>& rules,
                                               std::string_view groups) {
  const DevicePolicy policy = DevicePolicy::Of(rules);
  if (policy.allow_others) {
    // What is denied of it cannot be said to systemd.
    return {{.name = "DevicePolicy", .value = std::string("auto")}};
  }
  os::DeviceList allowed;
  for (const DeviceRule& rule : policy.rules) {
    std::string device = rule.allow ? DeviceOf(rule, groups) : "";
    if (!device.empty()) {
      allowed.emplace_back(std::move(device), RightsOf(rule));
    }
  }
  return {{.name = "DevicePolicy", .value = std::string("strict")},
          {.name = "DeviceAllow", .value = std::move(allowed)}};
}

}  // namespace gantry::cgroup::v1
