// SPDX-License-Identifier: Apache-2.0
//
// What is particular to cgroup v2. `Cgroup` (cgroup.h) is the way in; it has
// checked that the root is not meant.
#pragma once

#include <string>

#include <gantry/deadline.h>
#include <gantry/error.h>

#include "core/cgroup/cgroup.h"

namespace gantry::os::v2 {

Status Freeze(const std::string& dir, Deadline deadline);
Status Thaw(const std::string& dir, Deadline deadline);
Result<bool> Frozen(const std::string& dir);
Status Kill(const std::string& dir, Deadline deadline);

/// Makes the directory and those above it, each with all controllers that the
/// one above has. A controller that cannot be enabled is left out.
Status Create(const CgroupDir& cgroup);

Status Update(const std::string& dir, const CgroupResources& resources);

/// The range of v1's cpu.shares (2 to 262144) onto that of cpu.weight.
/// Source: runc 1.1 and 1.3.2, ConvertCPUSharesToCgroupV2Value; kubernetes/kubernetes#131216.
uint64_t WeightFromShares(uint64_t shares, CpuWeightFormula formula);
/// The range of v1's blkio.weight (10 to 1000) onto that of io.weight.
uint64_t WeightFromBlkio(uint16_t weight);

}  // namespace gantry::os::v2
