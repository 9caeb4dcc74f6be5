// SPDX-License-Identifier: Apache-2.0
//
// Limits for a cgroup: the part of the OCI runtime spec's `LinuxResources` that
// both hierarchies can carry. What is not set is left as it is.
// Source: opencontainers/runtime-spec 1.2, config-linux.md#control-groups.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gantry::cgroup {

/// How v2's cpu.weight is made of the spec's shares. Runtimes have changed from the one to the
/// other, so the weights of two containers compare only where both are made alike.
enum class CpuWeightFormula {
  /// Meets 1, 100 and 10000 at 2, 1024 and 262144 shares: crun from 1.23 on, runc from 1.3.2 on.
  kQuadratic,
  /// A straight line from 2 to 262144 shares: those before. 1024 shares, v1's default, become
  /// 39, of which v2's default is 100.
  kLinear,
};

/// The range of v1's cpu.shares (2 to 262144) onto that of cpu.weight.
/// Source: runc 1.1 and 1.3.2, ConvertCPUSharesToCgroupV2Value; kubernetes/kubernetes#131216.
uint64_t WeightFromShares(uint64_t shares, CpuWeightFormula formula);
/// The range of v1's blkio.weight (10 to 1000) onto that of io.weight.
uint64_t WeightFromBlkio(uint16_t weight);
/// The formula that makes `weight` of `shares`; nothing: neither does, or both do. A weight that
/// is one off counts: what has it from systemd or from a sum may have been rounded.
std::optional<CpuWeightFormula> FormulaThatMakes(uint64_t weight, uint64_t shares);

/// Value type. -1 means "no limit" wherever the spec says so.
struct CgroupResources {
  struct {
    std::optional<int64_t> limit_bytes{};
    std::optional<int64_t> reservation_bytes{};
    /// Memory plus swap, as in cgroup v1 and the spec.
    std::optional<int64_t> swap_bytes{};
    /// A limit below what is in use is refused; else the kernel kills to get there. v1 refuses
    /// it anyhow.
    bool check_before_update = false;
  } memory;

  struct {
    std::optional<uint64_t> shares{};
    CpuWeightFormula weight_formula = CpuWeightFormula::kQuadratic;
    std::optional<int64_t> quota_us{};
    std::optional<uint64_t> period_us{};
    std::optional<uint64_t> burst_us{};
    std::optional<int64_t> idle{};
    std::string cpus{};
    std::string mems{};
  } cpu;

  std::optional<int64_t> pids_limit;
  /// 10 to 1000, as in the spec.
  std::optional<uint16_t> blkio_weight;
  /// Page size ("2MB") and limit in bytes.
  std::vector<std::pair<std::string, uint64_t>> hugetlb_bytes;
  /// File name and content, cgroup v2 only.
  std::map<std::string, std::string> unified;
};

}  // namespace gantry::cgroup
