// SPDX-License-Identifier: Apache-2.0
//
// Limits on cgroup v1. A 0 means "not given" for everything but `cpu.idle` and
// `hugetlb`, as with runc: Docker sends zeros for what its user left out.
#include <gantry/format.h>
#include <gantry/toolkit/cgroup/counters.h>
#include <gantry/toolkit/files/files.h>

#include "core/toolkit/cgroup/update.h"
#include "core/toolkit/cgroup/v1.h"

namespace gantry::cgroup::v1 {
namespace {

constexpr size_t kMaxFile = 4096;

// The directory with the controller's files, with its `/`.
Result<std::string> Dir(const std::map<std::string, MountedCgroup>& dirs, const char* controller) {
  const auto found = dirs.find(controller);
  if (found == dirs.end()) {
    return Fail(Code::kUnimplemented, "set a limit: the container has no cgroup for '{}'",
                controller);
  }
  return found->second.dir() + "/";
}

// The value, 0 where it is not given.
template <class T>
T Or0(const std::optional<T>& value) {
  return value.value_or(T{0});
}

// The kernel keeps memory <= memory + swap at each step: what is raised above
// the other's old value goes second, so the order depends on the old limit.
Status UpdateMemory(const std::map<std::string, MountedCgroup>& dirs, const CgroupResources& all) {
  const auto& memory = all.memory;
  const bool unlimited = Or0(memory.limit_bytes) < 0;
  // Lifting the one limit without the other would be refused or have no effect.
  const int64_t swap = Or0(memory.swap_bytes) != 0 ? Or0(memory.swap_bytes) : (unlimited ? -1 : 0);
  if (Or0(memory.limit_bytes) == 0 && swap == 0 && Or0(memory.reservation_bytes) == 0) {
    return {};
  }
  GANTRY_TRY(const std::string dir, Dir(dirs, "memory"));
  const auto set_swap = [&]() -> Status {
    return swap == 0 ? Status()
                     : SetCgroupValue(dir + "memory.memsw.limit_in_bytes", LimitText(swap, false),
                                      swap < 0);
  };
  const auto set_limit = [&]() -> Status {
    return Or0(memory.limit_bytes) == 0 ? Status()
                                        : SetCgroupValue(dir + "memory.limit_in_bytes",
                                                         LimitText(Or0(memory.limit_bytes), false));
  };
  GANTRY_TRY(const std::string old_limit, ReadFile(dir + "memory.limit_in_bytes", kMaxFile));
  if (swap < 0 || static_cast<uint64_t>(swap) > NumberAlone(old_limit).value_or(0)) {
    GANTRY_CHECK_OK(set_swap());
    GANTRY_CHECK_OK(set_limit());
  } else {
    GANTRY_CHECK_OK(set_limit());
    GANTRY_CHECK_OK(set_swap());
  }
  if (Or0(memory.reservation_bytes) != 0) {
    return SetCgroupValue(dir + "memory.soft_limit_in_bytes",
                          LimitText(Or0(memory.reservation_bytes), false));
  }
  return {};
}

// Period, quota and burst depend on each other, and the quota on the cgroup
// above: what the kernel refuses at first is tried again when the others are set.
Status UpdateBandwidth(const std::string& dir, const CgroupResources& all) {
  const auto& cpu = all.cpu;
  const auto burst = [&]() -> Status {
    return cpu.burst_us ? SetCgroupValue(dir + "cpu.cfs_burst_us",
                                         std::to_string(Or0(cpu.burst_us)), Or0(cpu.burst_us) == 0)
                        : Status();
  };
  const auto period = [&]() -> Status {
    return Or0(cpu.period_us) != 0
               ? SetCgroupValue(dir + "cpu.cfs_period_us", std::to_string(Or0(cpu.period_us)))
               : Status();
  };
  Status early_burst = burst();
  Status early_period = period();
  const bool quota = Or0(cpu.quota_us) != 0;
  if (!early_burst && !(quota && IsRefusal(early_burst))) {
    return early_burst;
  }
  if (!early_period && !(quota && IsRefusal(early_period))) {
    return early_period;
  }
  if (quota) {
    GANTRY_CHECK_OK(SetCgroupValue(dir + "cpu.cfs_quota_us", LimitText(Or0(cpu.quota_us), false)));
  }
  GANTRY_CHECK_OK(early_period ? Status() : period());
  return early_burst ? Status() : burst();
}

Status UpdateCpu(const std::map<std::string, MountedCgroup>& dirs, const CgroupResources& all) {
  const auto& cpu = all.cpu;
  if (Or0(cpu.shares) == 0 && Or0(cpu.quota_us) == 0 && Or0(cpu.period_us) == 0 && !cpu.burst_us &&
      !cpu.idle) {
    return {};
  }
  GANTRY_TRY(const std::string dir, Dir(dirs, "cpu"));
  if (cpu.idle) {
    GANTRY_CHECK_OK(
        SetCgroupValue(dir + "cpu.idle", std::to_string(Or0(cpu.idle)), Or0(cpu.idle) == 0));
  }
  // An idle cgroup has no shares; the kernel refuses them.
  if (Or0(cpu.shares) != 0 && Or0(cpu.idle) == 0) {
    GANTRY_CHECK_OK(SetCgroupValue(dir + "cpu.shares", std::to_string(Or0(cpu.shares))));
  }
  return UpdateBandwidth(dir, all);
}

Status UpdateCpuset(const std::map<std::string, MountedCgroup>& dirs, const CgroupResources& all) {
  if (all.cpu.cpus.empty() && all.cpu.mems.empty()) {
    return {};
  }
  GANTRY_TRY(const std::string dir, Dir(dirs, "cpuset"));
  if (!all.cpu.cpus.empty()) {
    GANTRY_CHECK_OK(SetCgroupValue(dir + "cpuset.cpus", all.cpu.cpus));
  }
  return all.cpu.mems.empty() ? Status() : SetCgroupValue(dir + "cpuset.mems", all.cpu.mems);
}

Status UpdateBlkio(const std::map<std::string, MountedCgroup>& dirs, const CgroupResources& all) {
  if (Or0(all.blkio_weight) == 0) {
    return {};
  }
  GANTRY_TRY(const std::string dir, Dir(dirs, "blkio"));
  // CFQ has the one, BFQ the other.
  const bool bfq = Exists(dir + "blkio.bfq.weight") && !Exists(dir + "blkio.weight");
  return SetCgroupValue(dir + (bfq ? "blkio.bfq.weight" : "blkio.weight"),
                        std::to_string(Or0(all.blkio_weight)));
}

}  // namespace

Status Update(const std::map<std::string, MountedCgroup>& dirs, const CgroupResources& resources) {
  if (!resources.unified.empty()) {
    return Fail(Code::kInvalidArgument, "set '{}': the node has cgroup v1",
                resources.unified.begin()->first);
  }
  GANTRY_CHECK_OK(UpdateMemory(dirs, resources));
  GANTRY_CHECK_OK(UpdateCpu(dirs, resources));
  GANTRY_CHECK_OK(UpdateCpuset(dirs, resources));
  GANTRY_CHECK_OK(UpdateBlkio(dirs, resources));
  if (Or0(resources.pids_limit) != 0) {
    GANTRY_TRY(const std::string dir, Dir(dirs, "pids"));
    // "max" here as on v2.
    GANTRY_CHECK_OK(SetCgroupValue(dir + "pids.max", LimitText(Or0(resources.pids_limit), true)));
  }
  for (const auto& [size, bytes] : resources.hugetlb_bytes) {
    GANTRY_TRY(const std::string dir, Dir(dirs, "hugetlb"));
    GANTRY_CHECK_OK(
        SetCgroupValue(Format("{}hugetlb.{}.limit_in_bytes", dir, size), std::to_string(bytes)));
  }
  return {};
}

}  // namespace gantry::cgroup::v1
