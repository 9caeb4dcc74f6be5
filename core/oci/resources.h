// SPDX-License-Identifier: Apache-2.0
//
// LinuxResources of the OCI specification: limits for a container's cgroup,
// from config.json or from an Update request. Absent means "leave as it is".
// Source: OCI runtime-spec 1.2, config-linux.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>

namespace gantry::oci {

struct MemoryLimits {
  /// Bytes; -1: unlimited.
  std::optional<int64_t> limit;
  std::optional<int64_t> reservation;
  /// Memory and swap together, as v1 counts it; -1: unlimited.
  std::optional<int64_t> swap;
  std::optional<int64_t> kernel;
  std::optional<int64_t> kernel_tcp;
  /// 0 to 100.
  std::optional<uint64_t> swappiness;
  std::optional<bool> disable_oom_killer;
  /// Refuse a limit below what is used now.
  std::optional<bool> check_before_update;
};

struct CpuLimits {
  /// v1's shares, 2 to 262144.
  std::optional<uint64_t> shares;
  /// Microseconds per period; -1: unlimited.
  std::optional<int64_t> quota;
  std::optional<uint64_t> burst;
  /// Microseconds.
  std::optional<uint64_t> period;
  std::optional<int64_t> realtime_runtime;
  std::optional<uint64_t> realtime_period;
  /// Lists as cpuset takes them; empty: leave.
  std::string cpus;
  std::string mems;
  /// 1: SCHED_IDLE.
  std::optional<int64_t> idle;
};

struct DeviceLimit {
  int64_t major = 0;
  int64_t minor = 0;
  uint64_t value = 0;
};

struct BlockIoLimits {
  std::optional<uint16_t> weight;
  std::vector<DeviceLimit> weight_devices;
  std::vector<DeviceLimit> read_bps;
  std::vector<DeviceLimit> write_bps;
  std::vector<DeviceLimit> read_iops;
  std::vector<DeviceLimit> write_iops;
};

struct HugepageLimit {
  /// As the kernel spells it: 2MB, 1GB.
  std::string page_size;
  uint64_t limit = 0;
};

struct LinuxResources {
  MemoryLimits memory;
  CpuLimits cpu;
  /// 0 or less: unlimited.
  std::optional<int64_t> pids_limit;
  BlockIoLimits block_io;
  std::vector<HugepageLimit> hugepages;
  /// Files of the unified hierarchy and what to write, as they are.
  std::map<std::string, std::string> unified;
};

/// Errors: kInvalidArgument with a JSON pointer.
Result<LinuxResources> ParseResources(std::string_view text, std::string_view what = "resources");

}  // namespace gantry::oci
