// SPDX-License-Identifier: Apache-2.0
//
// What systemd is told of a scope where the controllers are on v1. There its properties are not
// read from files: their names and numbers are the spec's.
#pragma once

#include <string_view>
#include <vector>

#include <gantry/toolkit/cgroup/devices.h>
#include <gantry/toolkit/cgroup/resources.h>

#include "core/os/systemd_bus.h"

namespace gantry::cgroup::v1 {

/// What of `resources` are properties of a unit: of those that each systemd has that knows v1.
std::vector<os::UnitProperty> ScopeProperties(const CgroupResources& resources);

/// systemd sets the rules for devices anew whenever it applies the unit's settings, so it has to
/// know them. `groups`, the text of /proc/devices, has the names of devices with any minor.
std::vector<os::UnitProperty> DeviceProperties(const std::vector<DeviceRule>& rules,
                                               std::string_view groups);

}  // namespace gantry::cgroup::v1
