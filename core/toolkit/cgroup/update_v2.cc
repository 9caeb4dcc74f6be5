// SPDX-License-Identifier: Apache-2.0
//
// Limits on cgroup v2. The spec speaks of v1; what v2 counts differently is
// converted. A 0 means "not given", see update_v1.cc.
#include <charconv>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "core/toolkit/cgroup/update.h"
#include "core/toolkit/cgroup/v2.h"

namespace gantry::cgroup::v2 {
namespace {

constexpr size_t kMaxFile = 4096;

// The value, 0 where it is not given.
template <class T>
T Or0(const std::optional<T>& value) {
  return value.value_or(T{0});
}

// The memory limit that holds: the new one, or that of the file. -1: none.
Result<int64_t> MemoryLimit(const std::string& dir, const CgroupResources& all) {
  if (Or0(all.memory.limit_bytes) != 0) {
    return Or0(all.memory.limit_bytes);
  }
  GANTRY_TRY(const std::string text, ReadFile(dir + "memory.max", kMaxFile));
  int64_t limit = -1;
  std::from_chars(text.data(), text.data() + text.size(), limit);
  return limit;
}

// The spec's swap is memory plus swap; v2 limits swap alone.
Status UpdateSwap(const std::string& dir, const CgroupResources& all) {
  int64_t swap = -1;
  if (Or0(all.memory.swap_bytes) == 0) {
    // Nothing is left to be over the limit of, as on v1.
    if (Or0(all.memory.limit_bytes) >= 0) {
      return {};
    }
  } else if (Or0(all.memory.swap_bytes) > 0) {
    GANTRY_TRY(const int64_t limit, MemoryLimit(dir, all));
    if (limit < 0 || limit > Or0(all.memory.swap_bytes)) {
      return Fail(Code::kInvalidArgument, "set memory plus swap to {}: {}",
                  Or0(all.memory.swap_bytes),
                  limit < 0 ? "there is no memory limit" : "it is below the memory limit");
    }
    swap = Or0(all.memory.swap_bytes) - limit;
  }
  return SetCgroupValue(dir + "memory.swap.max", LimitText(swap, true), swap <= 0);
}

// Nothing is written where the kernel would have to kill.
Status CheckMemory(const std::string& dir, const CgroupResources& all) {
  const int64_t limit = Or0(all.memory.limit_bytes);
  if (!all.memory.check_before_update || limit <= 0) {
    return {};
  }
  GANTRY_TRY(const std::string text, ReadFile(dir + "memory.current", kMaxFile));
  int64_t used = 0;
  std::from_chars(text.data(), text.data() + text.size(), used);
  if (used > limit) {
    return Fail(Code::kFailedPrecondition,
                "set the memory limit to {}: {} bytes are in use, and checkBeforeUpdate is set",
                limit, used);
  }
  return {};
}

Status UpdateMemory(const std::string& dir, const CgroupResources& all) {
  GANTRY_CHECK_OK(UpdateSwap(dir, all));
  if (Or0(all.memory.limit_bytes) != 0) {
    const int64_t limit = Or0(all.memory.limit_bytes);
    GANTRY_CHECK_OK(SetCgroupValue(dir + "memory.max", LimitText(limit, true), limit < 0));
  }
  if (Or0(all.memory.reservation_bytes) != 0) {
    const int64_t low = Or0(all.memory.reservation_bytes);
    GANTRY_CHECK_OK(SetCgroupValue(dir + "memory.low", LimitText(low, true), low < 0));
  }
  return {};
}

// "QUOTA PERIOD"; a word alone is a quota and keeps the period.
Result<std::string> BandwidthText(const std::string& dir, const CgroupResources& all) {
  std::string quota;
  if (Or0(all.cpu.quota_us) != 0) {
    quota = LimitText(Or0(all.cpu.quota_us), true);
  } else {
    GANTRY_TRY(const std::string old, ReadFile(dir + "cpu.max", kMaxFile));
    quota = old.substr(0, old.find_first_of(" \n"));
  }
  return Or0(all.cpu.period_us) != 0 ? quota + " " + std::to_string(Or0(all.cpu.period_us)) : quota;
}

// A burst above the quota is refused, so is a quota below the burst: what is
// refused at first is tried again after the other.
Status UpdateBandwidth(const std::string& dir, const CgroupResources& all) {
  const auto burst = [&]() -> Status {
    return all.cpu.burst_us
               ? SetCgroupValue(dir + "cpu.max.burst", std::to_string(Or0(all.cpu.burst_us)),
                                Or0(all.cpu.burst_us) == 0)
               : Status();
  };
  if (Or0(all.cpu.quota_us) == 0 && Or0(all.cpu.period_us) == 0) {
    return burst();
  }
  Status early = burst();
  if (!early && !IsRefusal(early)) {
    return early;
  }
  GANTRY_TRY(const std::string text, BandwidthText(dir, all));
  GANTRY_CHECK_OK(SetCgroupValue(dir + "cpu.max", text));
  return early ? Status() : burst();
}

Status UpdateCpu(const std::string& dir, const CgroupResources& all) {
  if (all.cpu.idle) {
    GANTRY_CHECK_OK(SetCgroupValue(dir + "cpu.idle", std::to_string(Or0(all.cpu.idle)),
                                   Or0(all.cpu.idle) == 0));
  }
  // An idle cgroup has no weight; the kernel refuses it.
  if (Or0(all.cpu.shares) != 0 && Or0(all.cpu.idle) == 0) {
    GANTRY_CHECK_OK(SetCgroupValue(
        dir + "cpu.weight",
        std::to_string(WeightFromShares(Or0(all.cpu.shares), all.cpu.weight_formula))));
  }
  GANTRY_CHECK_OK(UpdateBandwidth(dir, all));
  if (!all.cpu.cpus.empty()) {
    GANTRY_CHECK_OK(SetCgroupValue(dir + "cpuset.cpus", all.cpu.cpus));
  }
  return all.cpu.mems.empty() ? Status() : SetCgroupValue(dir + "cpuset.mems", all.cpu.mems);
}

Status UpdateIo(const std::string& dir, const CgroupResources& all) {
  if (Or0(all.blkio_weight) == 0) {
    return {};
  }
  if (Exists(dir + "io.bfq.weight")) {
    return SetCgroupValue(dir + "io.bfq.weight", std::to_string(Or0(all.blkio_weight)));
  }
  return SetCgroupValue(dir + "io.weight", std::to_string(WeightFromBlkio(Or0(all.blkio_weight))));
}

}  // namespace

Status Update(const std::string& cgroup_dir, const CgroupResources& resources) {
  const std::string dir = cgroup_dir + "/";
  GANTRY_CHECK_OK(CheckMemory(dir, resources));
  GANTRY_CHECK_OK(UpdateMemory(dir, resources));
  GANTRY_CHECK_OK(UpdateCpu(dir, resources));
  GANTRY_CHECK_OK(UpdateIo(dir, resources));
  if (Or0(resources.pids_limit) != 0) {
    const int64_t limit = Or0(resources.pids_limit);
    GANTRY_CHECK_OK(SetCgroupValue(dir + "pids.max", LimitText(limit, true), limit < 0));
  }
  for (const auto& [size, bytes] : resources.hugetlb_bytes) {
    GANTRY_CHECK_OK(SetCgroupValue(Format("{}hugetlb.{}.max", dir, size), std::to_string(bytes)));
  }
  for (const auto& [name, value] : resources.unified) {
    if (name.contains('/') || name.starts_with('.') || !name.contains('.')) {
      return Fail(Code::kInvalidArgument, "set '{}': not the name of a cgroup file", name);
    }
    GANTRY_CHECK_OK(SetCgroupValue(dir + name, value));
  }
  return {};
}

}  // namespace gantry::cgroup::v2
