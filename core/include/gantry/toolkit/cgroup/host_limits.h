// SPDX-License-Identifier: Apache-2.0
//
// How large a machine of a sandbox's own (a sentry's, a guest's) is to be: as its cgroups are.
// Source: kernel, admin-guide/cgroup-v1/memory.rst, admin-guide/cgroup-v2.rst.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gantry::cgroup {

struct HostLimits {
  uint64_t host_memory_bytes = 0;
  /// Of the host, or the lowest limit of the cgroups and those above.
  uint64_t memory_bytes = 0;
  /// As many as the quota of time is worth, but at least two; 0: no quota.
  uint32_t cpus = 0;
};

/// Of a process in these directories. What cannot be read is no limit.
/// Blocks: on files. Thread: any.
HostLimits ReadHostLimits(const std::vector<std::string>& cgroups);

}  // namespace gantry::cgroup
