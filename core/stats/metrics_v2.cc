// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "core/stats/fields.h"
#include "core/stats/metrics.h"

namespace gantry::stats {
namespace {

using Stats = cgroup::CgroupV2Stats;

constexpr auto kCpuFields = std::to_array<CounterField>({
    {1, "usage_usec"},
    {2, "user_usec"},
    {3, "system_usec"},
    {4, "nr_periods"},
    {5, "nr_throttled"},
    {6, "throttled_usec"},
    {8, "nr_bursts"},
    {9, "burst_usec"},
});

constexpr auto kMemoryFields = std::to_array<CounterField>({
    {1, "anon"},
    {2, "file"},
    {3, "kernel_stack"},
    {4, "slab"},
    {5, "sock"},
    {6, "shmem"},
    {7, "file_mapped"},
    {8, "file_dirty"},
    {9, "file_writeback"},
    {10, "anon_thp"},
    {11, "inactive_anon"},
    {12, "active_anon"},
    {13, "inactive_file"},
    {14, "active_file"},
    {15, "unevictable"},
    {16, "slab_reclaimable"},
    {17, "slab_unreclaimable"},
    {18, "pgfault"},
    {19, "pgmajfault"},
    {20, "workingset_refault"},
    {21, "workingset_activate"},
    {22, "workingset_nodereclaim"},
    {23, "pgrefill"},
    {24, "pgscan"},
    {25, "pgsteal"},
    {26, "pgactivate"},
    {27, "pgdeactivate"},
    {28, "pglazyfree"},
    {29, "pglazyfreed"},
    {30, "thp_fault_alloc"},
    {31, "thp_collapse_alloc"},
});

constexpr auto kEventFields = std::to_array<CounterField>({
    {1, "low"},
    {2, "high"},
    {3, "max"},
    {4, "oom"},
    {5, "oom_kill"},
    {6, "oom_group_kill"},
});

void PressureLine(ProtoWriter& out, uint32_t field, const Stats::PressureLine& line) {
  ProtoWriter message;
  message.Double(1, line.avg10);
  message.Double(2, line.avg60);
  message.Double(3, line.avg300);
  Number(message, 4, line.total_us);
  out.Bytes(field, message.str());
}

void Pressure(ProtoWriter& out, uint32_t field, const std::optional<Stats::Pressure>& pressure) {
  if (!pressure) {
    return;
  }
  ProtoWriter message;
  PressureLine(message, 1, pressure->some);
  PressureLine(message, 2, pressure->full);
  out.Bytes(field, message.str());
}

void Cpu(ProtoWriter& out, const Stats::Cpu& cpu) {
  ProtoWriter message;
  Counters(message, cpu.stat, kCpuFields);
  Pressure(message, 7, cpu.pressure);
  out.Bytes(2, message.str());
}

// Kernels since 5.9 count refaults and activations of anonymous memory and of
// files apart; the message has one number for each.
uint64_t Split(const cgroup::CgroupCounters& stat, const std::string& name) {
  return cgroup::Counter(stat, name) + cgroup::Counter(stat, name + "_anon") +
         cgroup::Counter(stat, name + "_file");
}

void Memory(ProtoWriter& out, const Stats::Memory& memory) {
  cgroup::CgroupCounters stat = memory.stat;
  for (const char* name : {"workingset_refault", "workingset_activate"}) {
    stat[name] = Split(stat, name);
  }
  ProtoWriter message;
  Counters(message, stat, kMemoryFields);
  Number(message, 32, memory.usage);
  Number(message, 33, memory.limit);
  Number(message, 34, memory.swap_usage);
  Number(message, 35, memory.swap_limit);
  Number(message, 36, memory.peak);
  Number(message, 37, memory.swap_peak);
  Pressure(message, 38, memory.pressure);
  out.Bytes(4, message.str());
}

void Io(ProtoWriter& out, const Stats::Io& io) {
  ProtoWriter message;
  for (const Stats::IoEntry& entry : io.entries) {
    ProtoWriter one;
    Number(one, 1, entry.major);
    Number(one, 2, entry.minor);
    Number(one, 3, entry.read_bytes);
    Number(one, 4, entry.write_bytes);
    Number(one, 5, entry.read_ios);
    Number(one, 6, entry.write_ios);
    message.Bytes(1, one.str());
  }
  Pressure(message, 2, io.pressure);
  out.Bytes(6, message.str());
}

void Hugetlb(ProtoWriter& out, const cgroup::CgroupHugetlb& entry) {
  ProtoWriter message;
  Number(message, 1, entry.usage_bytes);
  Number(message, 2, entry.max_bytes);
  message.Text(3, entry.page_size);
  Number(message, 4, entry.fail_count);
  out.Bytes(7, message.str());
}

}  // namespace

std::string EncodeMetrics(const Stats& stats) {
  ProtoWriter out;
  if (stats.pids) {
    Pids(out, 1, *stats.pids);
  }
  if (stats.cpu) {
    Cpu(out, *stats.cpu);
  }
  if (stats.memory) {
    Memory(out, *stats.memory);
  }
  Rdma(out, 5, stats.rdma_current, stats.rdma_limit);
  if (stats.io) {
    Io(out, *stats.io);
  }
  for (const cgroup::CgroupHugetlb& entry : stats.hugetlb) {
    Hugetlb(out, entry);
  }
  if (stats.memory_events) {
    ProtoWriter events;
    Counters(events, *stats.memory_events, kEventFields);
    out.Bytes(8, events.str());
  }
  return out.Take();
}

}  // namespace gantry::stats
