// SPDX-License-Identifier: Apache-2.0
#include "core/stats/fields.h"
#include "core/stats/metrics.h"

namespace gantry::stats {
namespace {

using Stats = cgroup::CgroupV1Stats;

// MemoryStat's numbers and the words of memory.stat.
constexpr auto kMemoryFields = std::to_array<CounterField>({
    {1, "cache"},
    {2, "rss"},
    {3, "rss_huge"},
    {4, "mapped_file"},
    {5, "dirty"},
    {6, "writeback"},
    {7, "pgpgin"},
    {8, "pgpgout"},
    {9, "pgfault"},
    {10, "pgmajfault"},
    {11, "inactive_anon"},
    {12, "active_anon"},
    {13, "inactive_file"},
    {14, "active_file"},
    {15, "unevictable"},
    {16, "hierarchical_memory_limit"},
    {17, "hierarchical_memsw_limit"},
    {18, "total_cache"},
    {19, "total_rss"},
    {20, "total_rss_huge"},
    {21, "total_mapped_file"},
    {22, "total_dirty"},
    {23, "total_writeback"},
    {24, "total_pgpgin"},
    {25, "total_pgpgout"},
    {26, "total_pgfault"},
    {27, "total_pgmajfault"},
    {28, "total_inactive_anon"},
    {29, "total_active_anon"},
    {30, "total_inactive_file"},
    {31, "total_active_file"},
    {32, "total_unevictable"},
});

void MemoryEntry(ProtoWriter& out, uint32_t field, const Stats::MemoryEntry& entry) {
  ProtoWriter message;
  Number(message, 1, entry.limit);
  Number(message, 2, entry.usage);
  Number(message, 3, entry.max);
  Number(message, 4, entry.fail_count);
  out.Bytes(field, message.str());
}

void Memory(ProtoWriter& out, const Stats::Memory& memory) {
  ProtoWriter message;
  Counters(message, memory.stat, kMemoryFields);
  MemoryEntry(message, 33, memory.usage);
  MemoryEntry(message, 34, memory.swap);
  MemoryEntry(message, 35, memory.kernel);
  MemoryEntry(message, 36, memory.kernel_tcp);
  out.Bytes(4, message.str());
}

void OomControl(ProtoWriter& out, const Stats::Memory& memory) {
  ProtoWriter message;
  Number(message, 1, memory.oom_kill_disable);
  Number(message, 2, memory.under_oom);
  Number(message, 3, memory.oom_kill);
  out.Bytes(9, message.str());
}

void Cpu(ProtoWriter& out, const Stats::Cpu& cpu) {
  ProtoWriter usage;
  Number(usage, 1, cpu.total_ns);
  Number(usage, 2, cpu.kernel_ns);
  Number(usage, 3, cpu.user_ns);
  // Not packed, which every reader takes too: the sizes need no second pass.
  for (const uint64_t value : cpu.per_cpu_ns) {
    usage.Varint(4, value);
  }
  ProtoWriter throttling;
  Number(throttling, 1, cpu.periods);
  Number(throttling, 2, cpu.throttled_periods);
  Number(throttling, 3, cpu.throttled_ns);
  ProtoWriter message;
  message.Bytes(1, usage.str());
  message.Bytes(2, throttling.str());
  out.Bytes(3, message.str());
}

void BlkioEntries(ProtoWriter& out, uint32_t field, const std::vector<Stats::BlkioEntry>& list) {
  for (const Stats::BlkioEntry& entry : list) {
    ProtoWriter message;
    message.Text(1, entry.op);
    message.Text(2, entry.device);
    Number(message, 3, entry.major);
    Number(message, 4, entry.minor);
    Number(message, 5, entry.value);
    out.Bytes(field, message.str());
  }
}

void Blkio(ProtoWriter& out, const Stats::Blkio& blkio) {
  ProtoWriter message;
  BlkioEntries(message, 1, blkio.service_bytes);
  BlkioEntries(message, 2, blkio.serviced);
  BlkioEntries(message, 3, blkio.queued);
  BlkioEntries(message, 4, blkio.service_time);
  BlkioEntries(message, 5, blkio.wait_time);
  BlkioEntries(message, 6, blkio.merged);
  BlkioEntries(message, 7, blkio.time);
  BlkioEntries(message, 8, blkio.sectors);
  out.Bytes(5, message.str());
}

void Hugetlb(ProtoWriter& out, const cgroup::CgroupHugetlb& entry) {
  ProtoWriter message;
  Number(message, 1, entry.usage_bytes);
  Number(message, 2, entry.max_bytes);
  Number(message, 3, entry.fail_count);
  message.Text(4, entry.page_size);
  out.Bytes(1, message.str());
}

}  // namespace

std::string EncodeMetrics(const Stats& stats) {
  ProtoWriter out;
  for (const cgroup::CgroupHugetlb& entry : stats.hugetlb) {
    Hugetlb(out, entry);
  }
  if (stats.pids) {
    Pids(out, 2, *stats.pids);
  }
  if (stats.cpu) {
    Cpu(out, *stats.cpu);
  }
  if (stats.memory) {
    Memory(out, *stats.memory);
  }
  if (stats.blkio) {
    Blkio(out, *stats.blkio);
  }
  Rdma(out, 6, stats.rdma_current, stats.rdma_limit);
  if (stats.memory) {
    OomControl(out, *stats.memory);
  }
  return out.Take();
}

}  // namespace gantry::stats
