// SPDX-License-Identifier: Apache-2.0
//
// What is measured of a container in the message that containerd's callers decode:
// `io.containerd.cgroups.v1.Metrics` or `io.containerd.cgroups.v2.Metrics`, as the core writes
// it for containers whose cgroup is their own. What a sentry does not count is 0, and its part
// of the message is there: clients look into every part without asking.
// Source: containerd/cgroups v3.1, cgroup{1,2}/stats.
#pragma once

#include <cstdint>

#include <gantry/container.h>

namespace gantry::gvisor {

struct ContainerMetrics {
  uint64_t cpu_ns = 0;
  uint64_t memory_bytes = 0;
  /// The largest number: there is none.
  uint64_t memory_limit_bytes = UINT64_MAX;
  uint64_t processes = 0;
  /// 1: memory has ended it. containerd looks for that before it tells of an end by SIGKILL.
  uint64_t oom_kills = 0;
};

AnyValue MetricsV1(const ContainerMetrics& metrics);
AnyValue MetricsV2(const ContainerMetrics& metrics);

}  // namespace gantry::gvisor
