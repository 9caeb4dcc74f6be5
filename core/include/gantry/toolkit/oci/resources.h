// SPDX-License-Identifier: Apache-2.0
//
// LinuxResources of the OCI specification: limits for a container's cgroup,
// from config.json or from an Update request. Absent means "leave as it is".
// Source: OCI runtime-spec 1.2, config-linux.md.
#pragma once

#include <string_view>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/cgroup/devices.h>
#include <gantry/toolkit/cgroup/resources.h>
#include <gantry/toolkit/oci/json.h>

namespace gantry::oci {

/// What both cgroup hierarchies can carry of `text`; the rest is ignored.
/// Errors: kInvalidArgument with a JSON pointer.
Result<cgroup::CgroupResources> ParseResources(std::string_view text,
                                               std::string_view what = "resources");

/// The same for a part of a document; absent: nothing set.
Result<cgroup::CgroupResources> ReadResources(const Json& object);

/// `devices` of such a part, in their order; absent: none. A number that is absent or -1 is every
/// number, an absent type both, absent access all of it.
/// Errors: kInvalidArgument with a JSON pointer.
Result<std::vector<cgroup::DeviceRule>> ReadDeviceRules(const Json& object);

}  // namespace gantry::oci
