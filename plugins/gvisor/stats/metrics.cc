// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/stats/metrics.h"

#include <initializer_list>
#include <string>

#include <gantry/protowire.h>

namespace gantry::gvisor {
namespace {

/// PidsStat, alike in both versions; a sentry limits them not.
std::string Pids(const ContainerMetrics& metrics) {
  ProtoWriter pids;
  pids.Varint(1, metrics.processes);
  pids.Varint(2, UINT64_MAX);
  return pids.Take();
}

/// Parts of which nothing is counted.
void Empty(ProtoWriter& out, std::initializer_list<uint32_t> fields) {
  for (const uint32_t field : fields) {
    out.Bytes(field, "");
  }
}

}  // namespace

AnyValue MetricsV1(const ContainerMetrics& metrics) {
  ProtoWriter usage;
  usage.Varint(1, metrics.cpu_ns);
  ProtoWriter cpu;
  cpu.Bytes(1, usage.str());
  constexpr uint32_t kThrottling = 2;
  Empty(cpu, {kThrottling});
  ProtoWriter entry;
  entry.Varint(1, metrics.memory_limit_bytes);
  entry.Varint(2, metrics.memory_bytes);
  ProtoWriter memory;
  constexpr uint32_t kUsage = 33;
  memory.Bytes(kUsage, entry.str());
  constexpr uint32_t kSwap = 34;
  constexpr uint32_t kKernel = 35;
  constexpr uint32_t kKernelTcp = 36;
  Empty(memory, {kSwap, kKernel, kKernelTcp});
  ProtoWriter out;
  out.Bytes(2, Pids(metrics));
  out.Bytes(3, cpu.str());
  out.Bytes(4, memory.str());
  constexpr uint32_t kBlkio = 5;
  Empty(out, {kBlkio});
  ProtoWriter oom_control;
  oom_control.Varint(3, metrics.oom_kills);
  constexpr uint32_t kOomControl = 9;
  out.Bytes(kOomControl, oom_control.str());
  return {.type_url = "io.containerd.cgroups.v1.Metrics", .value = out.Take()};
}

AnyValue MetricsV2(const ContainerMetrics& metrics) {
  constexpr uint64_t kNsPerUs = 1000;
  ProtoWriter cpu;
  cpu.Varint(1, metrics.cpu_ns / kNsPerUs);
  ProtoWriter memory;
  constexpr uint32_t kUsage = 32;
  constexpr uint32_t kLimit = 33;
  memory.Varint(kUsage, metrics.memory_bytes);
  memory.Varint(kLimit, metrics.memory_limit_bytes);
  ProtoWriter out;
  out.Bytes(1, Pids(metrics));
  out.Bytes(2, cpu.str());
  out.Bytes(4, memory.str());
  constexpr uint32_t kIo = 6;
  Empty(out, {kIo});
  ProtoWriter events;
  constexpr uint32_t kOomKill = 5;
  events.Varint(kOomKill, metrics.oom_kills);
  constexpr uint32_t kMemoryEvents = 8;
  out.Bytes(kMemoryEvents, events.str());
  return {.type_url = "io.containerd.cgroups.v2.Metrics", .value = out.Take()};
}

}  // namespace gantry::gvisor
