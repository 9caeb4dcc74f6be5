// SPDX-License-Identifier: Apache-2.0
//
// By which formula a cgroup of v2 got its cpu.weight. Whoever sets it anew must use the same:
// with another, more shares can be a lower weight.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>

#include <gantry/toolkit/cgroup/cgroup.h>

namespace gantry::cgroup {

/// The formula by which the cgroup, or the scope of systemd that it lies in, got its weight from
/// any of `shares`, the surest first; 0: none were given. Nothing: it cannot be told, or the
/// cgroup is none of v2. Blocks: for two files of the kernel's. Thread: workers.
std::optional<CpuWeightFormula> FindWeightFormula(const CgroupHierarchy& node, const Cgroup& cgroup,
                                                  std::initializer_list<uint64_t> shares);

}  // namespace gantry::cgroup
