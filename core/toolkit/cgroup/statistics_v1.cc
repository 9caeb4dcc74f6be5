// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <map>
#include <ranges>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/cgroup/statistics.h>

#include "core/toolkit/cgroup/parse.h"

namespace gantry::cgroup {
namespace {

using Blkio = CgroupV1Stats::Blkio;
using DeviceNames = std::map<std::pair<uint64_t, uint64_t>, std::string>;

CgroupV1Stats::MemoryEntry ReadEntry(const std::string& prefix) {
  return {.limit = ReadCgroupNumber(prefix + "limit_in_bytes"),
          .usage = ReadCgroupNumber(prefix + "usage_in_bytes"),
          .max = ReadCgroupNumber(prefix + "max_usage_in_bytes"),
          .fail_count = ReadCgroupNumber(prefix + "failcnt")};
}

std::optional<CgroupV1Stats::Memory> ReadMemory(const std::string& dir) {
  const auto stat = ReadCgroupText(dir + "/memory.stat");
  if (!stat) {
    return std::nullopt;
  }
  CgroupV1Stats::Memory out;
  out.stat = ParseCgroupCounters(*stat);
  out.usage = ReadEntry(dir + "/memory.");
  out.swap = ReadEntry(dir + "/memory.memsw.");
  out.kernel = ReadEntry(dir + "/memory.kmem.");
  out.kernel_tcp = ReadEntry(dir + "/memory.kmem.tcp.");
  const auto oom = ParseCgroupCounters(ReadCgroupText(dir + "/memory.oom_control").value_or(""));
  out.oom_kill_disable = Counter(oom, "oom_kill_disable");
  out.under_oom = Counter(oom, "under_oom");
  out.oom_kill = Counter(oom, "oom_kill");
  return out;
}

void ReadUsage(const std::string& dir, CgroupV1Stats::Cpu& cpu) {
  // cpuacct.stat counts in ticks of USER_HZ.
  const auto hz = static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  const uint64_t ns_per_tick = 1'000'000'000 / (hz == 0 ? 100 : hz);
  cpu.total_ns = ReadCgroupNumber(dir + "/cpuacct.usage");
  const auto stat = ParseCgroupCounters(ReadCgroupText(dir + "/cpuacct.stat").value_or(""));
  cpu.user_ns = Counter(stat, "user") * ns_per_tick;
  cpu.kernel_ns = Counter(stat, "system") * ns_per_tick;
  const std::string per_cpu = ReadCgroupText(dir + "/cpuacct.usage_percpu").value_or("");
  for (const std::string_view word : CgroupWords(per_cpu)) {
    cpu.per_cpu_ns.push_back(ParseCgroupNumber(word));
  }
}

std::optional<CgroupV1Stats::Cpu> ReadCpu(const std::string& cpu_dir,
                                          const std::string& cpuacct_dir) {
  if (cpu_dir.empty() && cpuacct_dir.empty()) {
    return std::nullopt;
  }
  CgroupV1Stats::Cpu out;
  if (!cpuacct_dir.empty()) {
    ReadUsage(cpuacct_dir, out);
  }
  const auto stat = cpu_dir.empty() ? std::nullopt : ReadCgroupText(cpu_dir + "/cpu.stat");
  const auto throttling = ParseCgroupCounters(stat.value_or(""));
  out.periods = Counter(throttling, "nr_periods");
  out.throttled_periods = Counter(throttling, "nr_throttled");
  out.throttled_ns = Counter(throttling, "throttled_time");
  return out;
}

// The kernel gives numbers; /proc/partitions has the names.
DeviceNames ReadDeviceNames() {
  DeviceNames names;
  const std::string text = ReadCgroupText("/proc/partitions").value_or("");
  for (const auto part : std::views::split(text, '\n')) {
    const auto words = CgroupWords(std::string_view(part));
    if (words.size() == 4 && words[0] != "major") {
      names[{ParseCgroupNumber(words[0]), ParseCgroupNumber(words[1])}] =
          "/dev/" + std::string(words[3]);
    }
  }
  return names;
}

// Lines "8:0 Read 4096", without the operation for some files, and a "Total 4096"
// at the end that belongs to no device.
std::vector<CgroupV1Stats::BlkioEntry> ParseBlkio(std::string_view text, const DeviceNames& names) {
  std::vector<CgroupV1Stats::BlkioEntry> out;
  for (const auto part : std::views::split(text, '\n')) {
    const auto words = CgroupWords(std::string_view(part));
    CgroupV1Stats::BlkioEntry entry;
    if (words.size() < 2 || !ParseDeviceNumbers(words[0], entry.major, entry.minor)) {
      continue;
    }
    entry.op = words.size() > 2 ? std::string(words[1]) : std::string();
    entry.value = ParseCgroupNumber(words.back());
    const auto name = names.find({entry.major, entry.minor});
    entry.device = name == names.end() ? std::string() : name->second;
    out.push_back(std::move(entry));
  }
  return out;
}

// Which files there are depends on the IO scheduler: BFQ's, CFQ's (until Linux
// 5.0), or those of throttling that every cgroup has. The first that has counted
// something is taken.
std::optional<Blkio> ReadBlkio(const std::string& dir) {
  const DeviceNames names = ReadDeviceNames();
  const auto read = [&](const std::string& file) {
    return ParseBlkio(ReadCgroupText(dir + "/blkio." + file).value_or(""), names);
  };
  Blkio out;
  for (const std::string prefix : {"bfq.", ""}) {
    out.service_bytes = read(prefix + "io_service_bytes_recursive");
    out.serviced = read(prefix + "io_serviced_recursive");
    out.queued = read(prefix + "io_queued_recursive");
    out.service_time = read(prefix + "io_service_time_recursive");
    out.wait_time = read(prefix + "io_wait_time_recursive");
    out.merged = read(prefix + "io_merged_recursive");
    out.time = read(prefix + "time_recursive");
    out.sectors = read(prefix + "sectors_recursive");
    if (!out.service_bytes.empty() || !out.serviced.empty()) {
      return out;
    }
  }
  for (const std::string suffix : {"_recursive", ""}) {
    out.service_bytes = read("throttle.io_service_bytes" + suffix);
    out.serviced = read("throttle.io_serviced" + suffix);
    if (!out.service_bytes.empty() || !out.serviced.empty()) {
      break;
    }
  }
  return out;
}

std::vector<CgroupHugetlb> ReadHugetlb(const std::string& dir) {
  std::vector<CgroupHugetlb> out;
  for (const std::string& size : HugetlbSizes(dir, ".usage_in_bytes")) {
    const std::string prefix = Format("{}/hugetlb.{}", dir, size);
    out.push_back({.page_size = size,
                   .usage_bytes = ReadCgroupNumber(prefix + ".usage_in_bytes"),
                   .max_bytes = ReadCgroupNumber(prefix + ".max_usage_in_bytes"),
                   .fail_count = ReadCgroupNumber(prefix + ".failcnt")});
  }
  return out;
}

}  // namespace

Result<CgroupV1Stats> ReadCgroupV1Stats(const Cgroup& cgroup) {
  if (cgroup.is_unified()) {
    return Fail(Code::kFailedPrecondition, "read v1 statistics: the cgroup is of v2");
  }
  if (!cgroup.Exists()) {
    return Fail(Code::kNotFound, "read the statistics of cgroup '{}': it is gone",
                cgroup.DirOf("memory"));
  }
  const CgroupReadWatch watch;
  CgroupV1Stats out;
  if (const std::string dir = cgroup.DirOf("memory"); !dir.empty()) {
    out.memory = ReadMemory(dir);
  }
  out.cpu = ReadCpu(cgroup.DirOf("cpu"), cgroup.DirOf("cpuacct"));
  if (const std::string dir = cgroup.DirOf("pids"); !dir.empty()) {
    if (const auto current = ReadCgroupText(dir + "/pids.current")) {
      out.pids = CgroupPids{.current = ParseCgroupNumber(*current),
                            .limit = ReadCgroupNumber(dir + "/pids.max")};
    }
  }
  if (const std::string dir = cgroup.DirOf("blkio"); !dir.empty()) {
    out.blkio = ReadBlkio(dir);
  }
  if (const std::string dir = cgroup.DirOf("hugetlb"); !dir.empty()) {
    out.hugetlb = ReadHugetlb(dir);
  }
  if (const std::string dir = cgroup.DirOf("rdma"); !dir.empty()) {
    out.rdma_current = ParseCgroupRdma(ReadCgroupText(dir + "/rdma.current").value_or(""));
    out.rdma_limit = ParseCgroupRdma(ReadCgroupText(dir + "/rdma.max").value_or(""));
  }
  GANTRY_CHECK_OK(watch.status());
  return out;
}

}  // namespace gantry::cgroup
