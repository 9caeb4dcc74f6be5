// SPDX-License-Identifier: Apache-2.0
//
// The cgroups that a container's spec names, for a backend whose processes no OCI
// runtime places: the core makes them as such a runtime would.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/cgroup/cgroup.h>
#include <gantry/toolkit/cgroup/devices.h>

#include "core/cgroup/scope_unit.h"

namespace gantry::task {

/// The path that `linux.cgroupsPath` names, from the root of the hierarchy on; one that does
/// not begin with `/` begins there, too. `slice:prefix:name` is the scope `prefix-name.scope`
/// where systemd keeps the slice (`cgroup::SlicePath`; empty: `system.slice`).
/// Errors: kInvalidArgument. Source: OCI runtime-spec 1.2, config-linux.md#cgroups-path; runc
/// 1.1, docs/systemd.md.
Result<std::string> ContainerCgroupPath(std::string_view cgroups_path);

struct ContainerCgroup {
  /// Empty: the spec names none.
  cgroup::Cgroup cgroup;
  std::string path;
  /// Where the spec names one. Whether systemd is there to have it is not asked.
  std::optional<cgroup::ScopeName> scope;

  /// Nothing is made. Errors: kInvalidArgument; kFailedPrecondition: the node has no cgroups.
  static Result<ContainerCgroup> Find(const cgroup::CgroupHierarchy& hierarchy,
                                      const std::string& cgroups_path);
  /// That it may become the container's: it is not there, or nobody's. Errors:
  /// kFailedPrecondition: processes are in it, or it is frozen, as what is born there would be.
  Status CheckFree() const;
  /// Makes it, and the cgroups above it that are missing; these stay, as those that a runtime
  /// makes: others may be about to use them. `devices`: null where they are not limited. An error
  /// leaves nothing else. Again: fine. Blocks: never for long. Thread: workers.
  Status Create(const cgroup::CgroupHierarchy& hierarchy, const cgroup::CgroupResources& limits,
                const std::vector<cgroup::DeviceRule>* devices) const;
};

/// What an OCI runtime, or a backend, has made and left: those of `dirs` that have neither
/// processes nor cgroups below go; others may use the rest. Absent: fine. Errors: what else keeps
/// one from going. Blocks: never for long. Thread: workers.
Status RemoveLeftCgroups(const std::vector<std::string>& dirs);

/// Kills what is in it and removes it, with all below, and the unit `scope` of it; empty: it has
/// none. Absent: fine. A systemd that does not answer keeps nothing: it forgets an empty scope by
/// itself. Blocks: up to `limit` and half as long again. Thread: workers.
Status RemoveContainerCgroup(const cgroup::Cgroup& cgroup, const std::string& scope,
                             std::chrono::milliseconds limit);

}  // namespace gantry::task
