// SPDX-License-Identifier: Apache-2.0
//
// What the fake sandbox reads of its processes in /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace gantry::remote {

/// The processes in the pid namespace of `init`.
std::vector<pid_t> ProcessesInside(pid_t init);
/// The number that a process has in its own pid namespace; 0: it is gone.
uint32_t NumberInside(pid_t pid);

struct Usage {
  uint64_t memory_bytes = 0;
  uint64_t cpu_ns = 0;
};

Usage UsageOf(const std::vector<pid_t>& pids);

}  // namespace gantry::remote
