// SPDX-License-Identifier: Apache-2.0
#include "core/cgroup/scope_update.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <ranges>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/cgroup/counters.h>
#include <gantry/toolkit/files/files.h>

#include "core/cgroup/scope_v1.h"

namespace gantry::cgroup {
namespace {

constexpr size_t kMaxFile = 4096;
constexpr std::string_view kScopeEnd = ".scope";
constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kSecondUs = 1'000'000;
/// systemd keeps a quota as a percentage of a processor without a fraction, so what it
/// reads again is a multiple of this for each second.
constexpr uint64_t kPercentUs = 10'000;
/// More processors or memory nodes than Linux has.
constexpr unsigned kMaxBit = 8192;

/// A file with one number, or "max".
struct FileProperty {
  const char* file;
  const char* property;
};

constexpr auto kNumbers = std::to_array<FileProperty>({
    {.file = "memory.max", .property = "MemoryMax"},
    {.file = "memory.swap.max", .property = "MemorySwapMax"},
    {.file = "memory.low", .property = "MemoryLow"},
    {.file = "memory.min", .property = "MemoryMin"},
    {.file = "memory.high", .property = "MemoryHigh"},
    {.file = "cpu.weight", .property = "CPUWeight"},
    {.file = "pids.max", .property = "TasksMax"},
});

constexpr auto kSets = std::to_array<FileProperty>({
    {.file = "cpuset.cpus", .property = "AllowedCPUs"},
    {.file = "cpuset.mems", .property = "AllowedMemoryNodes"},
});

/// Whether an update with `all` writes `file`.
bool Writes(const CgroupResources& all, std::string_view file) {
  if (all.unified.contains(std::string(file))) {
    return true;
  }
  const bool limit = all.memory.limit_bytes.value_or(0) != 0;
  return (file == "memory.max" && limit) ||
         (file == "memory.swap.max" && (limit || all.memory.swap_bytes.value_or(0) != 0)) ||
         (file == "memory.low" && all.memory.reservation_bytes.value_or(0) != 0) ||
         (file == "cpu.weight" && all.cpu.shares.value_or(0) != 0 &&
          all.cpu.idle.value_or(0) == 0) ||
         (file == "pids.max" && all.pids_limit.value_or(0) != 0) ||
         (file == "cpu.max" &&
          (all.cpu.quota_us.value_or(0) != 0 || all.cpu.period_us.value_or(0) != 0)) ||
         (file == "cpuset.cpus" && !all.cpu.cpus.empty()) ||
         (file == "cpuset.mems" && !all.cpu.mems.empty());
}

/// Without the line's end; nothing: the node has no such file.
Result<std::optional<std::string>> ReadLine(const std::string& file) {
  const Result<std::string> text = ReadFile(file, kMaxFile);
  if (text) {
    return text->substr(0, text->find('\n'));
  }
  if (text.error().code == Code::kNotFound) {
    return std::nullopt;
  }
  return std::unexpected(text.error());
}

std::unexpected<Error> Odd(const std::string& file, std::string_view text) {
  return Fail(Code::kInternal, "tell systemd what is in {}: '{}' is not understood", file, text);
}

Result<uint64_t> ParseLimit(const std::string& file, std::string_view text) {
  if (text == "max") {
    return kNoLimit;
  }
  const auto number = NumberAlone(text);
  return number ? Result<uint64_t>(*number) : Odd(file, text);
}

/// A number of a set.
std::optional<unsigned> ParseBit(std::string_view text) {
  const auto number = NumberAlone(text);
  return number && *number <= kMaxBit ? std::optional(static_cast<unsigned>(*number))
                                      : std::nullopt;
}

/// "0-2,7" as a mask. The file's text is the kernel's own, of the set that was asked for.
Result<std::vector<uint8_t>> ParseSet(const std::string& file, std::string_view text) {
  std::vector<uint8_t> mask;
  for (const auto part : std::views::split(text, ',')) {
    const std::string_view range(part);
    const size_t dash = std::min(range.find('-'), range.size());
    const std::optional<unsigned> first = ParseBit(range.substr(0, dash));
    const std::optional<unsigned> last =
        dash == range.size() ? first : ParseBit(range.substr(dash + 1));
    if (!first || !last || *last < *first) {
      return Odd(file, text);
    }
    mask.resize(std::max<size_t>(mask.size(), *last / 8 + 1));
    for (unsigned bit = *first; bit <= *last; ++bit) {
      mask[bit / 8] |= static_cast<uint8_t>(1U << (bit % 8));
    }
  }
  return mask;
}

/// Of "QUOTA PERIOD".
Status AddBandwidth(const std::string& file, std::string_view text,
                    std::vector<os::UnitProperty>& out) {
  const size_t blank = text.find(' ');
  if (blank == text.npos) {
    return Odd(file, text);
  }
  GANTRY_TRY(const uint64_t quota, ParseLimit(file, text.substr(0, blank)));
  GANTRY_TRY(const uint64_t period, ParseLimit(file, text.substr(blank + 1)));
  if (period == 0) {
    return Odd(file, text);
  }
  uint64_t each_second = kNoLimit;
  if (quota != kNoLimit && quota <= kNoLimit / kSecondUs) {
    each_second = (quota * kSecondUs / period + kPercentUs - 1) / kPercentUs * kPercentUs;
  }
  out.push_back({.name = "CPUQuotaPeriodUSec", .value = period});
  out.push_back({.name = "CPUQuotaPerSecUSec", .value = each_second});
  return {};
}

/// The scope is one of systemd's, and is where it has it: it may be a mere name.
Result<bool> IsSystemds(std::string_view scope_path) {
  if (!os::HasSystemd()) {
    return false;
  }
  const std::string name(scope_path.substr(scope_path.rfind('/') + 1));
  const Result<std::string> path = os::ControlGroupOf(name);
  if (path) {
    return *path == scope_path;
  }
  if (path.error().code == Code::kNotFound) {
    return false;
  }
  return std::unexpected(path.error());
}

/// On v1 the same in each tree.
std::string PathOf(const Cgroup& cgroup) {
  if (cgroup.is_unified()) {
    return cgroup.unified().path;
  }
  return cgroup.v1().begin()->second.path;
}

Status Tell(std::string_view scope_path, const std::vector<os::UnitProperty>& properties) {
  if (properties.empty()) {
    return {};
  }
  Status told =
      os::SetUnitProperties(std::string(scope_path.substr(scope_path.rfind('/') + 1)), properties);
  if (!told) {
    return std::unexpected(std::move(told).error().Within("the new limits hold, but not for long"));
  }
  return told;
}

}  // namespace

std::string_view ScopeOf(std::string_view path) {
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('/', begin + 1), path.size());
    const std::string_view name = path.substr(begin + 1, end - begin - 1);
    if (name.size() > kScopeEnd.size() && name.ends_with(kScopeEnd)) {
      return path.substr(0, end);
    }
    begin = end;
  }
  return {};
}

Result<std::vector<os::UnitProperty>> ScopeProperties(const std::string& dir,
                                                      const CgroupResources& resources) {
  std::vector<os::UnitProperty> out;
  for (const FileProperty& number : kNumbers) {
    const std::string file = Format("{}/{}", dir, number.file);
    if (!Writes(resources, number.file)) {
      continue;
    }
    GANTRY_TRY(const auto text, ReadLine(file));
    if (text) {
      GANTRY_TRY(const uint64_t value, ParseLimit(file, *text));
      out.push_back({.name = number.property, .value = value});
    }
  }
  if (const std::string file = Format("{}/cpu.max", dir); Writes(resources, "cpu.max")) {
    GANTRY_TRY(const auto text, ReadLine(file));
    GANTRY_CHECK_OK(text ? AddBandwidth(file, *text, out) : Status());
  }
  for (const FileProperty& set : kSets) {
    const std::string file = Format("{}/{}", dir, set.file);
    if (!Writes(resources, set.file)) {
      continue;
    }
    GANTRY_TRY(const auto text, ReadLine(file));
    if (text && !text->empty()) {
      GANTRY_TRY(auto mask, ParseSet(file, *text));
      out.push_back({.name = set.property, .value = std::move(mask)});
    }
  }
  return out;
}

Status UpdateWithScope(const CgroupHierarchy& node, const Cgroup& cgroup,
                       const CgroupResources& resources) {
  const std::string path = PathOf(cgroup);
  const std::string_view scope_path = ScopeOf(path);
  bool systemds = false;
  if (!scope_path.empty()) {
    GANTRY_TRY(systemds, IsSystemds(scope_path));
  }
  if (!systemds) {
    return cgroup.Update(resources);
  }
  if (!cgroup.is_unified()) {
    GANTRY_CHECK_OK(cgroup.Update(resources));
    GANTRY_CHECK_OK(Tell(scope_path, v1::ScopeProperties(resources)));
    return cgroup.Update(resources);
  }
  GANTRY_TRY(const Cgroup scope, Cgroup::Named(node, std::string(scope_path)));
  // The scope first: what is raised below it has no effect before.
  GANTRY_CHECK_OK(scope.Update(resources));
  GANTRY_TRY(const auto properties, ScopeProperties(scope.unified().dir(), resources));
  GANTRY_CHECK_OK(Tell(scope_path, properties));
  // Again where there is but the scope: systemd has rounded the quota.
  return cgroup.Update(resources);
}

}  // namespace gantry::cgroup
