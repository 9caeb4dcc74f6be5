// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/launch/host_limits.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include <gantry/files.h>
#include <gantry/number.h>

namespace gantry::gvisor {
namespace {

constexpr std::string_view kMount = "/sys/fs/cgroup";
constexpr size_t kMaxFile = 4096;

std::optional<uint64_t> NumberOf(std::string_view text) {
  while (text.ends_with('\n')) {
    text.remove_suffix(1);
  }
  const auto number = ParseNumber(text);
  return number ? std::optional(static_cast<uint64_t>(*number)) : std::nullopt;
}

std::string Read(const std::string& path) { return ReadFile(path, kMaxFile).value_or(""); }

/// The number behind `name` in a file of lines.
uint64_t Field(const std::string& text, const std::string& name) {
  const size_t at = ("\n" + text).find("\n" + name + " ");
  if (at == std::string::npos) {
    return 0;
  }
  const std::string_view rest = std::string_view(text).substr(at + name.size() + 1);
  return NumberOf(rest.substr(0, rest.find('\n'))).value_or(0);
}

/// Of v2 "QUOTA PERIOD" or "max PERIOD", of v1 two files; quota / period, rounded up.
uint32_t Cpus(const std::string& dir) {
  std::string quota = Read(dir + "/cpu.max");
  std::string period;
  if (const size_t space = quota.find(' '); space != std::string::npos) {
    period = quota.substr(space + 1);
    quota.resize(space);
  } else {
    quota = Read(dir + "/cpu.cfs_quota_us");
    period = Read(dir + "/cpu.cfs_period_us");
  }
  const uint64_t spent = NumberOf(quota).value_or(0);
  const uint64_t of = NumberOf(period).value_or(0);
  constexpr uint64_t kLeast = 2;
  return spent == 0 || of == 0 ? 0 : static_cast<uint32_t>(std::max(kLeast, (spent + of - 1) / of));
}

uint64_t HostMemory() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

HostLimits ReadHostLimits(const std::vector<std::string>& cgroups) {
  HostLimits limits;
  limits.host_memory_bytes = HostMemory();
  limits.memory_bytes = limits.host_memory_bytes;
  for (std::string dir : cgroups) {
    for (; dir.size() > kMount.size(); dir.resize(dir.rfind('/'))) {
      for (const char* file : {"/memory.max", "/memory.limit_in_bytes"}) {
        limits.memory_bytes =
            std::min(limits.memory_bytes, NumberOf(Read(dir + file)).value_or(UINT64_MAX));
      }
      const uint32_t cpus = Cpus(dir);
      limits.cpus =
          limits.cpus == 0 || cpus == 0 ? std::max(limits.cpus, cpus) : std::min(limits.cpus, cpus);
    }
  }
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  limits.cpus = std::min(limits.cpus, static_cast<uint32_t>(std::max(online, 1L)));
  return limits;
}

uint64_t OomKills(const std::vector<std::string>& cgroups) {
  uint64_t kills = 0;
  for (const std::string& dir : cgroups) {
    for (const char* file : {"/memory.events", "/memory.oom_control"}) {
      kills = std::max(kills, Field(Read(dir + file), "oom_kill"));
    }
  }
  return kills;
}

}  // namespace gantry::gvisor
