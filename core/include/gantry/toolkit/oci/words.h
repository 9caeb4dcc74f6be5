// SPDX-License-Identifier: Apache-2.0
//
// The words of config.json that stand for a number of the kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gantry::oci {

/// The number of `CAP_CHOWN` and so on; none for what this version does not know.
std::optional<int> CapabilityOf(std::string_view name);

/// RLIMIT_* by its name.
std::optional<int> RlimitOf(std::string_view name);

/// SCHED_* by its name.
std::optional<uint32_t> SchedulerPolicyOf(std::string_view name);

/// SCHED_FLAG_* by its name.
std::optional<uint64_t> SchedulerFlagOf(std::string_view name);

/// IOPRIO_CLASS_* by its name.
std::optional<int> IoClassOf(std::string_view name);

}  // namespace gantry::oci
