// SPDX-License-Identifier: Apache-2.0
//
// systemd's unit for a container's cgroup that we make ourselves, as an OCI runtime's systemd
// driver makes it: with it `systemctl` knows the container, and systemd keeps its limits instead
// of taking them for nobody's.
//
// A scope has processes or is none, and systemd takes a cgroup that is there for its own. So the
// cgroup is made first, the container's first process is born in it and stands at its gate, and
// then the scope is started around it: no process has to hold the place, and none is moved.
// Source: systemd.scope(5), org.freedesktop.systemd1(5), systemd, docs/CGROUP_DELEGATION.md.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/toolkit/cgroup/cgroup.h>
#include <gantry/toolkit/cgroup/devices.h>

#include "core/os/systemd_bus.h"

namespace gantry::cgroup {

/// How long systemd may take over one: a node that boots has many of them.
inline constexpr std::chrono::seconds kScopeLimit{30};

struct ScopeName {
  /// "kubepods-pod1.slice"; systemd makes it where it is not there.
  std::string slice;
  /// "cri-containerd-c1.scope".
  std::string unit;

  bool operator==(const ScopeName&) const = default;
};

/// What a scope is started with.
struct ScopeRequest {
  std::string unit;
  std::string path;
  Cgroup cgroup;
  CgroupResources limits;
  /// Nothing: they are not limited.
  std::optional<std::vector<DeviceRule>> devices;
  std::vector<os::UnitProperty> properties;
};

/// Of a cgroup that has just been made with these limits; systemd is told what is in its files.
/// `devices`: null where they are not limited. Errors: reading the files. Thread: any.
Result<ScopeRequest> ScopeRequestOf(const ScopeName& name, const std::string& path,
                                    const Cgroup& cgroup, const CgroupResources& limits,
                                    const std::vector<DeviceRule>* devices);

/// Has systemd forget a unit of that name that is left of somebody who is gone: it has no cgroup,
/// or `path`, in which the caller has found no process.
/// Errors: kFailedPrecondition: there is one elsewhere, which is left alone; kUnavailable: systemd
/// cannot be asked, or does not answer. Blocks: until `by`. Thread: workers.
Status FreeScopeName(const std::string& unit, const std::string& path, Deadline by);

/// Starts it around what is in its cgroup, and sets the limits again that systemd has rounded or
/// does not know. No process there, or it ends meanwhile: nothing is to be done.
/// Errors: as above, and what systemd refuses. Blocks: until `by`. Thread: workers.
Status StartScope(const ScopeRequest& request, Deadline by);

/// Ends it; systemd kills what is in it. Absent, or another's of that name: fine.
/// Errors: kUnavailable. Blocks: until `by`. Thread: workers.
Status StopScope(const std::string& unit, const std::string& path, Deadline by);

}  // namespace gantry::cgroup
