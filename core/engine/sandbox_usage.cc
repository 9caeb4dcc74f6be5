// SPDX-License-Identifier: Apache-2.0
#include "core/engine/sandbox_usage.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include <gantry/toolkit/cgroup/statistics.h>
#include <gantry/toolkit/files/files.h>

namespace gantry::engine {
namespace {

constexpr size_t kMaxFileBytes = 4096;
constexpr std::string_view kUsage = "usage_usec ";
constexpr uint64_t kNanosPerMicro = 1000;

std::optional<uint64_t> NumberIn(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

std::optional<uint64_t> CpuMicros(const cgroup::Cgroup& cgroup) {
  if (!cgroup.is_unified()) {
    const auto text = ReadFile(cgroup.DirOf("cpuacct") + "/cpuacct.usage", kMaxFileBytes);
    const auto nanos = text ? NumberIn(*text) : std::nullopt;
    return nanos ? std::optional(*nanos / kNanosPerMicro) : std::nullopt;
  }
  const auto text = ReadFile(cgroup.DirOf("cpu") + "/cpu.stat", kMaxFileBytes);
  const size_t at = text ? text->find(kUsage) : std::string::npos;
  return at == std::string::npos ? std::nullopt
                                 : NumberIn(std::string_view(*text).substr(at + kUsage.size()));
}

void Add(std::optional<uint64_t>& sum, std::optional<uint64_t> value) {
  if (value) {
    sum = sum.value_or(0) + *value;
  }
}

}  // namespace

std::vector<metrics::SandboxRow> SandboxUsage::Read(std::vector<UsedBy> sandboxes) {
  ++call_;
  std::vector<std::pair<Known*, const UsedBy*>> order;
  order.reserve(sandboxes.size());
  for (const UsedBy& one : sandboxes) {
    Known& known = known_[{one.row.ns, one.row.id}];
    known.seen_in = call_;
    order.emplace_back(&known, &one);
  }
  std::erase_if(known_, [this](const auto& one) { return one.second.seen_in != call_; });
  std::ranges::stable_sort(order, {}, [](const auto& one) { return one.first->read_in; });
  const async::TimePoint until = clock_.Now() + limit_;
  for (const auto& [known, one] : order) {
    if (clock_.Now() >= until) {
      break;
    }
    std::optional<uint64_t> cpu;
    std::optional<uint64_t> memory;
    for (const cgroup::Cgroup& cgroup : one->cgroups) {
      const auto used = cgroup::ReadMemoryUse(cgroup);
      Add(memory, used ? std::optional(*used) : std::nullopt);
      Add(cpu, CpuMicros(cgroup));
    }
    *known = {.cpu_us = cpu, .memory_bytes = memory, .read_in = call_, .seen_in = call_};
  }
  std::vector<metrics::SandboxRow> rows;
  rows.reserve(sandboxes.size());
  for (UsedBy& one : sandboxes) {
    const Known& known = known_.at({one.row.ns, one.row.id});
    one.row.cpu_us = known.cpu_us;
    one.row.memory_bytes = known.memory_bytes;
    rows.push_back(std::move(one.row));
  }
  return rows;
}

}  // namespace gantry::engine
