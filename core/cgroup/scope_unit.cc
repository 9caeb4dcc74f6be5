// SPDX-License-Identifier: Apache-2.0
//
// Devices on v2 are systemd's business in no way: it attaches no program where a unit has no
// DevicePolicy=, and removes none but its own. So ours holds, and what a container was given later
// is not taken away by a daemon-reload.
#include "core/cgroup/scope_unit.h"

#include <fcntl.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/cgroup/tree.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/unique_fd.h>

#include "core/cgroup/scope_update.h"
#include "core/cgroup/scope_v1.h"

namespace gantry::cgroup {
namespace {

constexpr size_t kMaxDevicesFile = 64 << 10;

/// Whether systemd has a unit of that name.
enum class Holder { kNobody, kOurs, kAnother };

Result<Holder> FindHolder(const std::string& unit, const std::string& path, std::string& other,
                          Deadline by) {
  const Result<std::string> found = os::ControlGroupOf(unit, by);
  if (!found) {
    return found.error().code == Code::kNotFound ? Result<Holder>(Holder::kNobody)
                                                 : std::unexpected(found.error());
  }
  other = *found;
  return found->empty() || *found == path ? Holder::kOurs : Holder::kAnother;
}

/// In the very cgroup, not below: what is there already systemd does not move.
std::optional<uint32_t> FirstProcess(const Cgroup& cgroup) {
  const std::vector<std::string> dirs = cgroup.Dirs();
  const UniqueFd dir(dirs.empty() ? -1
                                  : open(dirs.front().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto all = dir ? ProcsAt(dir.get()) : Result<std::vector<pid_t>>(std::vector<pid_t>());
  return all && !all->empty() ? std::optional(static_cast<uint32_t>(all->front())) : std::nullopt;
}

/// What does not depend on the limits.
/// Source: runc 1.3, libcontainer/cgroups/systemd; systemd-run's --collect.
std::vector<os::UnitProperty> CommonProperties(const ScopeName& name, bool unified) {
  std::vector<os::UnitProperty> out = {
      {.name = "Description", .value = Format("container in {}", name.unit)},
      {.name = "Slice", .value = name.slice},
      // What is below it, and its controllers, are the container's.
      {.name = "Delegate", .value = true},
      // One that has failed is forgotten, too: its name is free, also where nobody is left to say.
      {.name = "CollectMode", .value = std::string("inactive-or-failed")},
      // Containers end with containerd's word, not with the target that it is started by.
      {.name = "DefaultDependencies", .value = false},
  };
  for (const char* const accounting : {"CPUAccounting", "MemoryAccounting", "TasksAccounting",
                                       unified ? "IOAccounting" : "BlockIOAccounting"}) {
    out.push_back({.name = accounting, .value = true});
  }
  return out;
}

/// systemd has a limit of its own for units that say nothing.
void AddTasksMax(std::vector<os::UnitProperty>& properties) {
  constexpr auto kName = "TasksMax";
  if (!std::ranges::contains(properties, kName, &os::UnitProperty::name)) {
    properties.push_back({.name = kName, .value = std::numeric_limits<uint64_t>::max()});
  }
}

}  // namespace

Result<ScopeRequest> ScopeRequestOf(const ScopeName& name, const std::string& path,
                                    const Cgroup& cgroup, const CgroupResources& limits,
                                    const std::vector<DeviceRule>* devices) {
  ScopeRequest request{.unit = name.unit,
                       .path = path,
                       .cgroup = cgroup,
                       .limits = limits,
                       .devices = {},
                       .properties = CommonProperties(name, cgroup.is_unified())};
  std::vector<os::UnitProperty> more;
  if (cgroup.is_unified()) {
    GANTRY_TRY(more, ScopeProperties(cgroup.unified().dir(), limits));
  } else {
    more = v1::ScopeProperties(limits);
    if (devices != nullptr) {
      request.devices = *devices;
      const auto groups = ReadFile("/proc/devices", kMaxDevicesFile);
      std::ranges::move(v1::DeviceProperties(*devices, groups.value_or("")),
                        std::back_inserter(more));
    }
  }
  std::ranges::move(more, std::back_inserter(request.properties));
  AddTasksMax(request.properties);
  return request;
}

Status FreeScopeName(const std::string& unit, const std::string& path, Deadline by) {
  std::string other;
  GANTRY_TRY(const Holder holder, FindHolder(unit, path, other, by));
  if (holder == Holder::kAnother) {
    return Fail(Code::kFailedPrecondition,
                "make scope '{}': systemd has a unit of that name, in '{}' and not in '{}'", unit,
                other, path);
  }
  return holder == Holder::kOurs ? os::StopUnit(unit, by) : Status();
}

Status StartScope(const ScopeRequest& request, Deadline by) {
  const std::optional<uint32_t> process = FirstProcess(request.cgroup);
  if (!process) {
    return {};
  }
  std::vector<os::UnitProperty> properties = request.properties;
  properties.push_back({.name = "PIDs", .value = os::UnitPids{*process}});
  Status started = os::StartTransientUnit(request.unit, properties, by);
  if (started) {
    started = request.cgroup.Update(request.limits);
  }
  if (started && request.devices) {
    started = LimitDevices(request.cgroup, *request.devices);
  }
  // Its end is told in its own way.
  return started || !FirstProcess(request.cgroup) ? Status() : started;
}

Status StopScope(const std::string& unit, const std::string& path, Deadline by) {
  std::string other;
  GANTRY_TRY(const Holder holder, FindHolder(unit, path, other, by));
  return holder == Holder::kOurs ? os::StopUnit(unit, by) : Status();
}

}  // namespace gantry::cgroup
