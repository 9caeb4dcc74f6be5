// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/container/stats.h"

#include <string>

namespace gantry::vmm {
namespace {

/// A cgroup of the guest has no limit where none was set, which 0 stands for.
uint64_t LimitOf(uint64_t told) { return told == 0 ? UINT64_MAX : told; }

/// Source: Linux, include/uapi/linux/if.h, IFNAMSIZ; whoever is in the guest tells what he likes.
std::string NameOf(std::string told) {
  constexpr size_t kMost = 15;
  std::erase_if(told, [](char c) { return c <= ' ' || c > '~'; });
  return told.substr(0, kMost);
}

}  // namespace

ContainerMetrics MetricsOf(const protocol::StatsAnswer& stats) {
  ContainerMetrics metrics;
  metrics.cpu = {.usage_ns = stats.cpu_usage_ns,
                 .user_ns = stats.cpu_user_ns,
                 .system_ns = stats.cpu_system_ns};
  metrics.memory = {.usage_bytes = stats.memory_usage_bytes,
                    .limit_bytes = LimitOf(stats.memory_limit_bytes),
                    .anonymous_bytes = stats.anonymous_bytes,
                    .inactive_file_bytes = stats.inactive_file_bytes,
                    .page_faults = stats.page_faults,
                    .major_page_faults = stats.major_page_faults,
                    .oom_kills = stats.oom_kills};
  metrics.pids = {.current = stats.pids, .limit = LimitOf(stats.pids_limit)};
  for (const protocol::DeviceStats& one : stats.devices) {
    if (metrics.devices.size() < ContainerMetrics::kMost) {
      metrics.devices.push_back({.major = one.major,
                                 .minor = one.minor,
                                 .read_bytes = one.read_bytes,
                                 .written_bytes = one.written_bytes,
                                 .reads = one.reads,
                                 .writes = one.writes});
    }
  }
  for (const protocol::InterfaceStats& one : stats.interfaces) {
    if (metrics.interfaces.size() < ContainerMetrics::kMost) {
      metrics.interfaces.push_back({.name = NameOf(one.name),
                                    .received = {.bytes = one.received_bytes,
                                                 .packets = one.received_packets,
                                                 .errors = one.received_errors,
                                                 .dropped = one.received_dropped},
                                    .sent = {.bytes = one.sent_bytes,
                                             .packets = one.sent_packets,
                                             .errors = one.sent_errors,
                                             .dropped = one.sent_dropped}});
    }
  }
  return metrics;
}

}  // namespace gantry::vmm
