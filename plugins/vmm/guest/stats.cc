// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/guest/stats.h"

#include <array>
#include <charconv>
#include <ranges>
#include <string>

#include <gantry/toolkit/cgroup/statistics.h>
#include <gantry/toolkit/files/files.h>

namespace gantry::vmm::guest {
namespace {

constexpr size_t kMaxFile = size_t{64} << 10;
constexpr size_t kMost = 1024;
constexpr uint64_t kNsInUs = 1000;

void TakeMemory(const cgroup::CgroupV2Stats::Memory& memory, protocol::StatsAnswer& out) {
  out.memory_usage_bytes = memory.usage;
  out.memory_limit_bytes = memory.limit;
  out.anonymous_bytes = cgroup::Counter(memory.stat, "anon");
  out.inactive_file_bytes = cgroup::Counter(memory.stat, "inactive_file");
  out.page_faults = cgroup::Counter(memory.stat, "pgfault");
  out.major_page_faults = cgroup::Counter(memory.stat, "pgmajfault");
}

protocol::StatsAnswer StatsOf(const cgroup::CgroupV2Stats& stats) {
  protocol::StatsAnswer out;
  out.memory_limit_bytes = UINT64_MAX;
  out.pids_limit = UINT64_MAX;
  if (stats.cpu) {
    out.cpu_usage_ns = cgroup::Counter(stats.cpu->stat, "usage_usec") * kNsInUs;
    out.cpu_user_ns = cgroup::Counter(stats.cpu->stat, "user_usec") * kNsInUs;
    out.cpu_system_ns = cgroup::Counter(stats.cpu->stat, "system_usec") * kNsInUs;
  }
  if (stats.memory) {
    TakeMemory(*stats.memory, out);
  }
  if (stats.pids) {
    out.pids = stats.pids->current;
    out.pids_limit = stats.pids->limit;
  }
  if (stats.io) {
    for (const auto& entry : stats.io->entries | std::views::take(kMost)) {
      out.devices.push_back({.major = entry.major,
                             .minor = entry.minor,
                             .read_bytes = entry.read_bytes,
                             .written_bytes = entry.write_bytes,
                             .reads = entry.read_ios,
                             .writes = entry.write_ios});
    }
  }
  return out;
}

// A node of v1 is nobody's guest; the agent's tests run on some.
Result<protocol::StatsAnswer> StatsOfV1(const cgroup::Cgroup& cgroup) {
  GANTRY_TRY(const auto stats, cgroup::ReadCgroupV1Stats(cgroup));
  protocol::StatsAnswer out;
  out.cpu_usage_ns = stats.cpu ? stats.cpu->total_ns : 0;
  out.memory_usage_bytes = stats.memory ? stats.memory->usage.usage : 0;
  out.memory_limit_bytes = stats.memory ? stats.memory->usage.limit : UINT64_MAX;
  out.pids = stats.pids ? stats.pids->current : 0;
  return out;
}

}  // namespace

std::vector<protocol::InterfaceStats> ParseInterfaces(std::string_view text) {
  std::vector<protocol::InterfaceStats> all;
  for (const auto part : std::views::split(text, '\n')) {
    const std::string_view line(part);
    const size_t colon = line.find(':');
    const size_t begin = line.find_first_not_of(' ');
    if (colon == line.npos || begin >= colon || line.substr(begin, colon - begin) == "lo" ||
        all.size() >= kMost) {
      continue;
    }
    std::array<uint64_t, 16> numbers{};
    const char* at = line.data() + colon + 1;
    const char* const end = line.data() + line.size();
    for (uint64_t& number : numbers) {
      while (at != end && *at == ' ') {
        ++at;
      }
      at = std::from_chars(at, end, number).ptr;
    }
    all.push_back({.name = std::string(line.substr(begin, colon - begin)),
                   .received_bytes = numbers[0],
                   .received_packets = numbers[1],
                   .received_errors = numbers[2],
                   .received_dropped = numbers[3],
                   .sent_bytes = numbers[8],
                   .sent_packets = numbers[9],
                   .sent_errors = numbers[10],
                   .sent_dropped = numbers[11]});
  }
  return all;
}

Result<protocol::StatsAnswer> ReadStats(const cgroup::Cgroup& cgroup) {
  protocol::StatsAnswer out;
  if (cgroup.is_unified()) {
    GANTRY_TRY(const auto stats, cgroup::ReadCgroupV2Stats(cgroup));
    out = StatsOf(stats);
  } else {
    GANTRY_TRY(out, StatsOfV1(cgroup));
  }
  if (const auto text = ReadFile("/proc/net/dev", kMaxFile)) {
    out.interfaces = ParseInterfaces(*text);
  }
  return out;
}

}  // namespace gantry::vmm::guest
