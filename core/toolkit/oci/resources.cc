// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <gantry/toolkit/oci/resources.h>

namespace gantry::oci {
namespace {

Status ReadMemory(const Json& memory, cgroup::CgroupResources& out) {
  GANTRY_CHECK_OK(memory.CheckObject());
  GANTRY_CHECK_OK(memory["limit"].Read(out.memory.limit_bytes));
  GANTRY_CHECK_OK(memory["reservation"].Read(out.memory.reservation_bytes));
  GANTRY_CHECK_OK(memory["checkBeforeUpdate"].Read(out.memory.check_before_update));
  return memory["swap"].Read(out.memory.swap_bytes);
}

/// As the kernel reads a list of numbers: one with nothing but blanks has none.
void ClearBlank(std::string& list) {
  if (list.find_first_not_of(" \t\n") == std::string::npos) {
    list.clear();
  }
}

Status ReadCpu(const Json& cpu, cgroup::CgroupResources& out) {
  GANTRY_CHECK_OK(cpu.CheckObject());
  GANTRY_CHECK_OK(cpu["shares"].Read(out.cpu.shares));
  GANTRY_CHECK_OK(cpu["quota"].Read(out.cpu.quota_us));
  GANTRY_CHECK_OK(cpu["period"].Read(out.cpu.period_us));
  GANTRY_CHECK_OK(cpu["burst"].Read(out.cpu.burst_us));
  GANTRY_CHECK_OK(cpu["idle"].Read(out.cpu.idle));
  GANTRY_CHECK_OK(cpu["cpus"].Read(out.cpu.cpus));
  GANTRY_CHECK_OK(cpu["mems"].Read(out.cpu.mems));
  ClearBlank(out.cpu.cpus);
  ClearBlank(out.cpu.mems);
  return {};
}

Status ReadHugepages(const Json& list, cgroup::CgroupResources& out) {
  GANTRY_TRY(const auto items, list.Items());
  for (const Json& item : items) {
    std::pair<std::string, uint64_t> limit;
    GANTRY_CHECK_OK(item.CheckObject());
    GANTRY_CHECK_OK(item["pageSize"].Read(limit.first));
    GANTRY_CHECK_OK(item["limit"].Read(limit.second));
    // It becomes part of a file name.
    if (limit.first.empty() || limit.first.contains('/')) {
      return item["pageSize"].Wrong("not a page size");
    }
    out.hugetlb_bytes.push_back(std::move(limit));
  }
  return {};
}

Status ReadUnified(const Json& unified, cgroup::CgroupResources& out) {
  GANTRY_CHECK_OK(unified.Read(out.unified));
  for (const auto& [file, value] : out.unified) {
    if (file.empty() || file.contains('/') || !file.contains('.') || file.starts_with('.')) {
      return unified[file].Wrong("not a file name of a cgroup");
    }
  }
  return {};
}

/// The kernel has 12 bits for a major number and 20 for a minor one.
constexpr int64_t kMaxMajor = 0xfff;
constexpr int64_t kMaxMinor = 0xfffff;

Status ReadNumber(const Json& place, int64_t most, std::optional<uint32_t>& out) {
  int64_t number = -1;
  GANTRY_CHECK_OK(place.Read(number));
  if (number < -1 || number > most) {
    return place.WrongValue("not a number of a device");
  }
  if (number >= 0) {
    out = static_cast<uint32_t>(number);
  }
  return {};
}

Result<cgroup::DeviceRule> ReadDeviceRule(const Json& item) {
  cgroup::DeviceRule rule;
  std::string type = "a";
  std::string access = "rwm";
  GANTRY_CHECK_OK(item.CheckObject());
  GANTRY_CHECK_OK(item["allow"].Read(rule.allow));
  GANTRY_CHECK_OK(item["type"].Read(type));
  GANTRY_CHECK_OK(item["access"].Read(access));
  GANTRY_CHECK_OK(ReadNumber(item["major"], kMaxMajor, rule.major));
  GANTRY_CHECK_OK(ReadNumber(item["minor"], kMaxMinor, rule.minor));
  if (type != "a" && type != "b" && type != "c") {
    return item["type"].WrongValue("not a type of a device, which is a, b or c");
  }
  if (access.find_first_not_of("rwm") != access.npos) {
    return item["access"].WrongValue("not made of r, w and m");
  }
  rule.type = type.front();
  rule.read = access.contains('r');
  rule.write = access.contains('w');
  rule.mknod = access.contains('m');
  return rule;
}

}  // namespace

Result<std::vector<cgroup::DeviceRule>> ReadDeviceRules(const Json& object) {
  std::vector<cgroup::DeviceRule> rules;
  GANTRY_CHECK_OK(object.CheckObject());
  GANTRY_TRY(const auto items, object["devices"].Items());
  rules.reserve(items.size());
  for (const Json& item : items) {
    GANTRY_TRY(rules.emplace_back(), ReadDeviceRule(item));
  }
  return rules;
}

Result<cgroup::CgroupResources> ReadResources(const Json& object) {
  cgroup::CgroupResources out;
  GANTRY_CHECK_OK(object.CheckObject());
  GANTRY_CHECK_OK(ReadMemory(object["memory"], out));
  GANTRY_CHECK_OK(ReadCpu(object["cpu"], out));
  GANTRY_CHECK_OK(object["pids"].CheckObject());
  GANTRY_CHECK_OK(object["pids"]["limit"].Read(out.pids_limit));
  GANTRY_CHECK_OK(object["blockIO"].CheckObject());
  GANTRY_CHECK_OK(object["blockIO"]["weight"].Read(out.blkio_weight));
  GANTRY_CHECK_OK(ReadHugepages(object["hugepageLimits"], out));
  GANTRY_CHECK_OK(ReadUnified(object["unified"], out));
  return out;
}

Result<cgroup::CgroupResources> ParseResources(std::string_view text, std::string_view what) {
  GANTRY_TRY(const Json object, Json::Parse(text, what));
  if (object.absent()) {
    return object.Wrong("expected an object, found null");
  }
  return ReadResources(object);
}

}  // namespace gantry::oci
