// SPDX-License-Identifier: Apache-2.0
//
// `process.execCPUAffinity`: the CPUs of a process that joins a container.
// Source: OCI runtime-spec 1.3, config.md; sched_setaffinity(2), cpuset(7), "Formats".
#pragma once

#include <string_view>
#include <vector>

#include <gantry/error.h>

namespace gantry::container {

/// A mask as the kernel takes it; empty: none was asked for.
using CpuMask = std::vector<unsigned long>;

/// `0-3,7`; an empty mask for an empty list. `name`: what errors call it.
/// Errors: kInvalidArgument: no such list, or a CPU above 8191.
Result<CpuMask> ParseCpuList(std::string_view list, std::string_view name);

/// As many as a kernel can have: those of the process's cgroup are what is left of them.
CpuMask AllCpus();

/// Of the calling thread and what it makes from then on. An empty mask: nothing is changed.
/// Errors: kInvalidArgument: none of them is there, or is one of its cgroup's.
Status SetAffinity(const CpuMask& mask, std::string_view name);

}  // namespace gantry::container
