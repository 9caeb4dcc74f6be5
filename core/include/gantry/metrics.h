// SPDX-License-Identifier: Apache-2.0
//
// What a backend measures of a container, or of all in a sandbox, where the host's cgroups
// cannot tell. The core makes of it the message that containerd's callers decode, of the
// version that fits the node's cgroups: `io.containerd.cgroups.v1.Metrics` or `.v2.Metrics`.
//
// What a backend does not count it leaves as it is here: callers are told 0, or no limit.
// Source: containerd/cgroups v3.1, cgroup{1,2}/stats/metrics.proto.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gantry {

/// Plain data. Counters never run backwards during the life of what is measured.
struct ContainerMetrics {
  struct Cpu {
    /// Time used so far. metrics-server takes a container with 0 for one that was not measured.
    uint64_t usage_ns = 0;
    /// Of it, in and outside the kernel.
    uint64_t user_ns = 0;
    uint64_t system_ns = 0;
  };

  struct Memory {
    /// All that counts towards the limit, files that are cached included.
    uint64_t usage_bytes = 0;
    /// The largest number: there is none.
    uint64_t limit_bytes = UINT64_MAX;
    /// Of no file: what CRI calls the resident set.
    uint64_t anonymous_bytes = 0;
    /// Cached files that nobody has used of late: CRI's working set is `usage_bytes` without them.
    uint64_t inactive_file_bytes = 0;
    uint64_t page_faults = 0;
    /// Of them, those that had to read.
    uint64_t major_page_faults = 0;
    /// How often a process was killed for want of it. containerd looks here before it tells of
    /// an end by SIGKILL.
    uint64_t oom_kills = 0;
  };

  struct Pids {
    /// Processes, or threads where the backend counts these.
    uint64_t current = 0;
    /// The largest number: there is none.
    uint64_t limit = UINT64_MAX;
  };

  /// Of one block device.
  struct Device {
    uint64_t major = 0;
    uint64_t minor = 0;
    uint64_t read_bytes = 0;
    uint64_t written_bytes = 0;
    uint64_t reads = 0;
    uint64_t writes = 0;
  };

  /// One direction of a network interface.
  struct Traffic {
    uint64_t bytes = 0;
    uint64_t packets = 0;
    uint64_t errors = 0;
    uint64_t dropped = 0;
  };

  struct Interface {
    /// As it is called inside.
    std::string name;
    Traffic received;
    Traffic sent;
  };

  Cpu cpu;
  Memory memory;
  Pids pids;
  /// At most `kMost` of each.
  std::vector<Device> devices;
  std::vector<Interface> interfaces;

  static constexpr size_t kMost = 1024;
};

}  // namespace gantry
