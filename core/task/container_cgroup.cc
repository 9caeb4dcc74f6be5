// SPDX-License-Identifier: Apache-2.0
//
// A cgroup that is found is taken where nobody is in it: it may be left of an engine that was
// killed while it made the container.
#include "core/task/container_cgroup.h"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include <gantry/deadline.h>
#include <gantry/format.h>
#include <gantry/toolkit/cgroup/cgroup.h>
#include <gantry/toolkit/cgroup/tree.h>

#include "core/cgroup/slice_path.h"
#include "core/log/log.h"

namespace gantry::task {
namespace {

constexpr std::string_view kSystemSlice = "system.slice";
/// How long the removal of one that has no processes may take.
constexpr auto kEmptyLimit = std::chrono::milliseconds(1000);

std::unexpected<Error> Wrong(std::string_view cgroups_path, std::string_view why) {
  return Fail(Code::kInvalidArgument, "/linux/cgroupsPath: '{}': {}", cgroups_path, why);
}

struct ScopePlace {
  cgroup::ScopeName name;
  std::string path;
};

/// Of `slice:prefix:name`.
Result<ScopePlace> PlaceOfScope(std::string_view cgroups_path) {
  const size_t first = cgroups_path.find(':');
  const size_t second = cgroups_path.find(':', first + 1);
  if (second == std::string_view::npos || cgroups_path.find(':', second + 1) != cgroups_path.npos) {
    return Wrong(cgroups_path, "neither a path nor slice:prefix:name");
  }
  const std::string_view slice = first == 0 ? kSystemSlice : cgroups_path.substr(0, first);
  const std::string_view prefix = cgroups_path.substr(first + 1, second - first - 1);
  const std::string_view name = cgroups_path.substr(second + 1);
  if (name.empty() || cgroups_path.contains('/')) {
    return Wrong(cgroups_path, "no name of a scope");
  }
  auto parent = cgroup::SlicePath(slice);
  if (!parent) {
    return Wrong(cgroups_path, "its first part is no slice");
  }
  std::string unit = Format("{}{}{}.scope", prefix, prefix.empty() ? "" : "-", name);
  std::string path = Format("{}/{}", *parent == "/" ? "" : *parent, unit);
  return ScopePlace{.name = {.slice = std::string(slice), .unit = std::move(unit)},
                    .path = std::move(path)};
}

bool NamesScope(std::string_view cgroups_path) {
  return !cgroups_path.starts_with('/') && cgroups_path.contains(':');
}

/// From the root of the hierarchy on, the same on each.
std::string PathOf(const cgroup::Cgroup& cgroup) {
  if (cgroup.is_unified()) {
    return cgroup.unified().path;
  }
  return cgroup.v1().empty() ? "" : cgroup.v1().begin()->second.path;
}

bool IsGone(const Error& error) {
  return error.code == Code::kNotFound || error.sys_errno == ENODEV;
}

}  // namespace

Result<std::string> ContainerCgroupPath(std::string_view cgroups_path) {
  if (NamesScope(cgroups_path)) {
    GANTRY_TRY(ScopePlace place, PlaceOfScope(cgroups_path));
    return std::move(place.path);
  }
  return Format("{}{}", cgroups_path.starts_with('/') ? "" : "/", cgroups_path);
}

Result<ContainerCgroup> ContainerCgroup::Find(const cgroup::CgroupHierarchy& hierarchy,
                                              const std::string& cgroups_path) {
  ContainerCgroup found;
  if (cgroups_path.empty()) {
    return found;
  }
  GANTRY_TRY(found.path, ContainerCgroupPath(cgroups_path));
  if (NamesScope(cgroups_path)) {
    GANTRY_TRY(ScopePlace place, PlaceOfScope(cgroups_path));
    found.scope = std::move(place.name);
  }
  auto cgroup = cgroup::Cgroup::Named(hierarchy, found.path);
  if (!cgroup) {
    return Wrong(cgroups_path, cgroup.error().message);
  }
  if (cgroup->empty()) {
    return Fail(Code::kFailedPrecondition, "make cgroup '{}': the node has no cgroups", found.path);
  }
  if (cgroup->Dirs().empty()) {
    return Wrong(cgroups_path, "the root of the cgroups is no container's");
  }
  found.cgroup = std::move(*cgroup);
  return found;
}

Status ContainerCgroup::CheckFree() const {
  for (const std::string& dir : cgroup.Dirs()) {
    const Result<std::vector<pid_t>> inside = cgroup::ProcsBelow(dir);
    if (!inside && !IsGone(inside.error())) {
      return std::unexpected(inside.error());
    }
    if (inside && !inside->empty()) {
      return Fail(
          Code::kFailedPrecondition,
          "make cgroup '{}': it is there, and has {} processes that are not the container's", dir,
          inside->size());
    }
  }
  if (cgroup.Exists() && cgroup.Frozen().value_or(false)) {
    return Fail(Code::kFailedPrecondition, "make cgroup '{}': it is there, and frozen", path);
  }
  return {};
}

Status ContainerCgroup::Create(const cgroup::CgroupHierarchy& hierarchy,
                               const cgroup::CgroupResources& limits,
                               const std::vector<cgroup::DeviceRule>* devices) const {
  const auto same = cgroup::Cgroup::Create(hierarchy, path);
  Status made = same ? cgroup.Update(limits) : std::unexpected(same.error());
  if (made && devices != nullptr) {
    made = cgroup::LimitDevices(cgroup, *devices);
  }
  if (!made) {
    IgnoreError(cgroup.Remove(kEmptyLimit), "the container's removal tries again");
    return std::unexpected(std::move(made).error().Within(Format("make cgroup '{}'", path)));
  }
  return made;
}

Status RemoveLeftCgroups(const std::vector<std::string>& dirs) {
  Status first;
  for (const std::string& dir : dirs) {
    const bool stays = rmdir(dir.c_str()) != 0 && errno != ENOENT;
    if (stays && errno != EBUSY && errno != ENOTEMPTY && first) {
      first = FailErrno(errno, "remove cgroup '{}'", dir);
    }
  }
  return first;
}

Status RemoveContainerCgroup(const cgroup::Cgroup& cgroup, const std::string& scope,
                             std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  GANTRY_CHECK_OK(cgroup.Kill(limit));
  if (!scope.empty()) {
    // Before its cgroup: systemd may not see that a cgroup has become empty which is not there.
    const auto wait = std::min<std::chrono::milliseconds>(cgroup::kScopeLimit, limit / 2);
    const Status ended =
        cgroup::StopScope(scope, PathOf(cgroup), std::chrono::steady_clock::now() + wait);
    if (!ended) {
      LogWarning({{"scope", scope}}, "{}; it is systemd's to find that the scope is empty",
                 ended.error().message);
    }
  }
  return cgroup.Remove(gantry::Left(until));
}

}  // namespace gantry::task
