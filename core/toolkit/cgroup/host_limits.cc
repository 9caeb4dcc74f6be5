// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>

#include <gantry/toolkit/cgroup/counters.h>
#include <gantry/toolkit/cgroup/host_limits.h>
#include <gantry/toolkit/files/files.h>

namespace gantry::cgroup {
namespace {

/// Of v2 "QUOTA PERIOD" or "max PERIOD", of v1 two files; quota / period, rounded up. 0: no quota.
uint32_t Cpus(const std::string& dir) {
  auto quota = ReadNumber(dir + "/cpu.cfs_quota_us");
  auto period = ReadNumber(dir + "/cpu.cfs_period_us");
  constexpr size_t kMaxFile = 64;
  if (const auto both = ReadFile(dir + "/cpu.max", kMaxFile)) {
    const size_t space = both->find(' ');
    quota = NumberAlone(both->substr(0, space));
    period = NumberAlone(both->substr(space + 1));
  }
  const uint64_t spent = quota.value_or(0);
  const uint64_t of = period.value_or(0);
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
  limits.memory_bytes = std::min(limits.host_memory_bytes, MemoryLimitBytes(cgroups));
  for (const std::string& first : cgroups) {
    for (const std::string& dir : UpToRoot(first)) {
      const uint32_t cpus = Cpus(dir);
      limits.cpus =
          limits.cpus == 0 || cpus == 0 ? std::max(limits.cpus, cpus) : std::min(limits.cpus, cpus);
    }
  }
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  limits.cpus = std::min(limits.cpus, static_cast<uint32_t>(std::max(online, 1L)));
  return limits;
}

}  // namespace gantry::cgroup
