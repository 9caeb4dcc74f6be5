// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <gantry/protowire.h>

#include "core/log/printable.h"
#include "core/stats/fields.h"
#include "core/stats/metrics.h"

namespace gantry::stats {
namespace {

constexpr uint64_t kNsPerUs = 1000;
/// Of a name; the kernel's have 15.
constexpr size_t kMaxName = 64;
/// `network` of both messages.
constexpr uint32_t kNetworkV1 = 7;
constexpr uint32_t kNetworkV2 = 9;

cgroup::CgroupV1Stats ToV1(const ContainerMetrics& metrics) {
  cgroup::CgroupV1Stats stats;
  stats.pids = cgroup::CgroupPids{.current = metrics.pids.current, .limit = metrics.pids.limit};
  stats.cpu = cgroup::CgroupV1Stats::Cpu{.total_ns = metrics.cpu.usage_ns,
                                         .kernel_ns = metrics.cpu.system_ns,
                                         .user_ns = metrics.cpu.user_ns};
  const ContainerMetrics::Memory& memory = metrics.memory;
  stats.memory = cgroup::CgroupV1Stats::Memory();
  stats.memory->stat = {{"total_rss", memory.anonymous_bytes},
                        {"total_inactive_file", memory.inactive_file_bytes},
                        {"total_pgfault", memory.page_faults},
                        {"total_pgmajfault", memory.major_page_faults}};
  stats.memory->usage = {.limit = memory.limit_bytes, .usage = memory.usage_bytes};
  stats.memory->oom_kill = memory.oom_kills;
  stats.blkio = cgroup::CgroupV1Stats::Blkio();
  for (const ContainerMetrics::Device& device : metrics.devices) {
    const auto entry = [&device](const char* op, uint64_t value) {
      return cgroup::CgroupV1Stats::BlkioEntry{
          .op = op, .major = device.major, .minor = device.minor, .value = value};
    };
    stats.blkio->service_bytes.push_back(entry("Read", device.read_bytes));
    stats.blkio->service_bytes.push_back(entry("Write", device.written_bytes));
    stats.blkio->serviced.push_back(entry("Read", device.reads));
    stats.blkio->serviced.push_back(entry("Write", device.writes));
  }
  return stats;
}

cgroup::CgroupV2Stats ToV2(const ContainerMetrics& metrics) {
  cgroup::CgroupV2Stats stats;
  stats.pids = cgroup::CgroupPids{.current = metrics.pids.current, .limit = metrics.pids.limit};
  stats.cpu = cgroup::CgroupV2Stats::Cpu();
  stats.cpu->stat = {{"usage_usec", metrics.cpu.usage_ns / kNsPerUs},
                     {"user_usec", metrics.cpu.user_ns / kNsPerUs},
                     {"system_usec", metrics.cpu.system_ns / kNsPerUs}};
  const ContainerMetrics::Memory& memory = metrics.memory;
  stats.memory = cgroup::CgroupV2Stats::Memory();
  stats.memory->stat = {{"anon", memory.anonymous_bytes},
                        {"inactive_file", memory.inactive_file_bytes},
                        {"pgfault", memory.page_faults},
                        {"pgmajfault", memory.major_page_faults}};
  stats.memory->usage = memory.usage_bytes;
  stats.memory->limit = memory.limit_bytes;
  stats.memory_events = cgroup::CgroupCounters{{"oom_kill", memory.oom_kills}};
  stats.io = cgroup::CgroupV2Stats::Io();
  for (const ContainerMetrics::Device& device : metrics.devices) {
    stats.io->entries.push_back({.major = device.major,
                                 .minor = device.minor,
                                 .read_bytes = device.read_bytes,
                                 .write_bytes = device.written_bytes,
                                 .read_ios = device.reads,
                                 .write_ios = device.writes});
  }
  return stats;
}

/// NetworkStat, alike in both versions: what is appended to a message is a part of it.
std::string Network(uint32_t field, const std::vector<ContainerMetrics::Interface>& interfaces) {
  ProtoWriter out;
  for (const ContainerMetrics::Interface& interface : interfaces) {
    std::string name;
    log::AppendPrintable(name, interface.name, kMaxName);
    ProtoWriter message;
    message.Text(1, name);
    uint32_t number = 2;
    for (const ContainerMetrics::Traffic* traffic : {&interface.received, &interface.sent}) {
      for (const uint64_t value :
           {traffic->bytes, traffic->packets, traffic->errors, traffic->dropped}) {
        Number(message, number++, value);
      }
    }
    out.Bytes(field, message.str());
  }
  return out.Take();
}

}  // namespace

Result<TypedMessage> Encode(const ContainerMetrics& metrics, cgroup::CgroupMode node) {
  constexpr size_t kMost = ContainerMetrics::kMost;
  if (metrics.devices.size() > kMost || metrics.interfaces.size() > kMost) {
    return Fail(
        Code::kResourceExhausted,
        "measure: its backend names {} devices and {} interfaces, more than {} are not told",
        metrics.devices.size(), metrics.interfaces.size(), kMost);
  }
  // Also where the node has no cgroups at all.
  if (node == cgroup::CgroupMode::kV2 || node == cgroup::CgroupMode::kNone) {
    return TypedMessage{std::string(kMetricsV2),
                        EncodeMetrics(ToV2(metrics)) + Network(kNetworkV2, metrics.interfaces)};
  }
  return TypedMessage{std::string(kMetricsV1),
                      EncodeMetrics(ToV1(metrics)) + Network(kNetworkV1, metrics.interfaces)};
}

}  // namespace gantry::stats
