// SPDX-License-Identifier: Apache-2.0
//
// config.json of a bundle, from its file, and what it asks of cgroups.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/cgroup/devices.h>
#include <gantry/toolkit/cgroup/resources.h>
#include <gantry/toolkit/oci/spec.h>

namespace gantry::oci {

/// Largest config.json that is read unless the configuration says otherwise.
inline constexpr size_t kMaxSpecBytes = size_t{16} << 20;

/// Reads and checks `bundle`/config.json, `linux.resources` too.
/// Errors: kNotFound: no such file; kInvalidArgument: anything wrong with it,
/// with the file and a JSON pointer (`/process/args/0`); as `ReadFile` else.
/// Blocks: for the file. Thread: workers.
Result<Spec> ReadSpec(const std::string& bundle, size_t max_bytes = kMaxSpecBytes);

/// What `spec` limits, as cgroups take it; `file` is what errors call it.
/// Errors: kInvalidArgument; none for what `ReadSpec` gave.
Result<cgroup::CgroupResources> ResourcesOf(const Spec& spec,
                                            std::string_view file = "config.json");

/// Its rules for devices. Errors: kInvalidArgument, also for what `ReadSpec` gave.
Result<std::vector<cgroup::DeviceRule>> DeviceRulesOf(const Spec& spec,
                                                      std::string_view file = "config.json");

}  // namespace gantry::oci
