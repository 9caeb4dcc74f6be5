// SPDX-License-Identifier: Apache-2.0
//
// A cgroup's statistics as the kernel gives them. The structs have what
// containerd's metrics messages can carry (core/stats makes those), in the
// kernel's own units unless the name says otherwise. "max" is UINT64_MAX.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/cgroup/cgroup.h>

namespace gantry::cgroup {

/// Names and numbers of a flat-keyed file such as memory.stat.
using CgroupCounters = std::map<std::string, uint64_t, std::less<>>;

/// The value of `name`, 0 where the kernel does not have it.
uint64_t Counter(const CgroupCounters& counters, std::string_view name);

struct CgroupPids {
  uint64_t current = 0;
  uint64_t limit = 0;
};

struct CgroupRdma {
  std::string device{};
  uint32_t hca_handles = 0;
  uint32_t hca_objects = 0;
};

struct CgroupHugetlb {
  /// As in the file names: "2MB".
  std::string page_size{};
  uint64_t usage_bytes = 0;
  /// v1: the highest usage so far. v2: the limit.
  uint64_t max_bytes = 0;
  uint64_t fail_count = 0;
};

/// cgroup v1. A part whose controller is absent is not set.
struct CgroupV1Stats {
  struct MemoryEntry {
    uint64_t limit = 0;
    uint64_t usage = 0;
    uint64_t max = 0;
    uint64_t fail_count = 0;
  };

  struct Memory {
    /// memory.stat as it is.
    CgroupCounters stat;
    MemoryEntry usage;
    MemoryEntry swap;
    MemoryEntry kernel;
    MemoryEntry kernel_tcp;
    uint64_t oom_kill_disable = 0;
    uint64_t under_oom = 0;
    uint64_t oom_kill = 0;
  };

  struct Cpu {
    uint64_t total_ns = 0;
    uint64_t kernel_ns = 0;
    uint64_t user_ns = 0;
    std::vector<uint64_t> per_cpu_ns{};
    uint64_t periods = 0;
    uint64_t throttled_periods = 0;
    uint64_t throttled_ns = 0;
  };

  struct BlkioEntry {
    std::string op{};
    std::string device{};
    uint64_t major = 0;
    uint64_t minor = 0;
    uint64_t value = 0;
  };

  struct Blkio {
    std::vector<BlkioEntry> service_bytes{};
    std::vector<BlkioEntry> serviced{};
    std::vector<BlkioEntry> queued{};
    std::vector<BlkioEntry> service_time{};
    std::vector<BlkioEntry> wait_time{};
    std::vector<BlkioEntry> merged{};
    std::vector<BlkioEntry> time{};
    std::vector<BlkioEntry> sectors{};
  };

  std::optional<CgroupPids> pids{};
  std::optional<Cpu> cpu{};
  std::optional<Memory> memory{};
  std::optional<Blkio> blkio{};
  std::vector<CgroupHugetlb> hugetlb{};
  std::vector<CgroupRdma> rdma_current{};
  std::vector<CgroupRdma> rdma_limit{};
};

/// cgroup v2. A part whose controller is not enabled is not set.
struct CgroupV2Stats {
  struct PressureLine {
    double avg10 = 0;
    double avg60 = 0;
    double avg300 = 0;
    uint64_t total_us = 0;
  };

  struct Pressure {
    PressureLine some;
    PressureLine full;
  };

  struct Cpu {
    /// cpu.stat as it is.
    CgroupCounters stat;
    std::optional<Pressure> pressure{};
  };

  struct Memory {
    /// memory.stat as it is.
    CgroupCounters stat;
    uint64_t usage = 0;
    uint64_t limit = 0;
    uint64_t peak = 0;
    uint64_t swap_usage = 0;
    uint64_t swap_limit = 0;
    uint64_t swap_peak = 0;
    std::optional<Pressure> pressure{};
  };

  struct IoEntry {
    uint64_t major = 0;
    uint64_t minor = 0;
    uint64_t read_bytes = 0;
    uint64_t write_bytes = 0;
    uint64_t read_ios = 0;
    uint64_t write_ios = 0;
  };

  struct Io {
    std::vector<IoEntry> entries{};
    std::optional<Pressure> pressure{};
  };

  std::optional<CgroupPids> pids{};
  std::optional<Cpu> cpu{};
  std::optional<Memory> memory{};
  /// memory.events as it is.
  std::optional<CgroupCounters> memory_events{};
  std::optional<Io> io{};
  std::vector<CgroupHugetlb> hugetlb{};
  std::vector<CgroupRdma> rdma_current{};
  std::vector<CgroupRdma> rdma_limit{};
};

/// Reads what there is. A file that is absent leaves its part unset; only a
/// cgroup that is gone altogether is an error (kNotFound).
/// Thread: any. Blocks: never for long; memory.stat may flush counters (ms).
Result<CgroupV1Stats> ReadCgroupV1Stats(const Cgroup& cgroup);
Result<CgroupV2Stats> ReadCgroupV2Stats(const Cgroup& cgroup);

/// Bytes that the cgroup accounts for, on either hierarchy. Errors: kNotFound
/// without the memory controller. Thread: any.
Result<uint64_t> ReadMemoryUse(const Cgroup& cgroup);

/// How often the kernel killed in this cgroup for lack of memory, on either
/// hierarchy. Errors: kNotFound without the memory controller.
Result<uint64_t> ReadOomKills(const Cgroup& cgroup);

}  // namespace gantry::cgroup
