// SPDX-License-Identifier: Apache-2.0
//
// Limits are set on a pod's cgroup where it is made here, and only then; what was found is left as
// it is.
#include "core/pod/pod_cgroup.h"

#include <gantry/format.h>
#include <gantry/toolkit/cgroup/cgroup.h>

#include "core/cgroup/slice_path.h"
#include "core/config/config.h"

namespace gantry::task {
namespace {

template <class T>
std::optional<T> Sum(std::optional<T> limit, std::optional<T> more) {
  // -1 is no limit.
  if (limit && more && *limit != static_cast<T>(-1) && *more != static_cast<T>(-1)) {
    return *limit + *more;
  }
  return limit;
}

}  // namespace

Result<std::string> PodCgroupPath(std::string_view cgroup_parent) {
  if (!cgroup_parent.ends_with(cgroup::kSliceSuffix)) {
    std::string path(cgroup_parent);
    return path.starts_with('/') ? path : "/" + path;
  }
  // Kubernetes hands over the last part only: `kubepods-burstable-pod1.slice`.
  Result<std::string> path = cgroup::SlicePath(cgroup_parent.substr(cgroup_parent.rfind('/') + 1));
  if (!path) {
    return Fail(Code::kInvalidArgument, "cgroup_parent '{}': not the name of a slice",
                cgroup_parent);
  }
  return path;
}

cgroup::CgroupResources PodLimits(const PodResources& resources, const PodResources& overhead) {
  cgroup::CgroupResources limits;
  limits.memory.limit_bytes = Sum(resources.memory_limit, overhead.memory_limit);
  limits.memory.swap_bytes = Sum(resources.memory_swap_limit, overhead.memory_limit);
  // Both are of the same period in Kubernetes.
  limits.cpu.quota_us = Sum(resources.cpu_quota, overhead.cpu_quota);
  limits.cpu.shares = Sum(resources.cpu_shares, overhead.cpu_shares);
  limits.cpu.period_us = resources.cpu_period;
  limits.cpu.cpus = resources.cpuset_cpus;
  limits.cpu.mems = resources.cpuset_mems;
  limits.unified = resources.unified;
  return limits;
}

Result<PodCgroup> PodCgroup::Find(const cgroup::CgroupHierarchy& hierarchy, const PodConfig& config,
                                  std::string_view id) {
  PodCgroup cgroups;
  if (config.cgroup_parent.empty()) {
    return cgroups;
  }
  GANTRY_TRY(const std::string path, PodCgroupPath(config.cgroup_parent));
  GANTRY_TRY(cgroups.pod, cgroup::Cgroup::Named(hierarchy, path));
  cgroups.own_path = Format("{}/gantry-{}", path == "/" ? "" : path, id);
  GANTRY_TRY(cgroups.own, cgroup::Cgroup::Named(hierarchy, cgroups.own_path));
  cgroups.made = path != "/" && !cgroups.pod.Exists();
  return cgroups;
}

Status PodCgroup::Create(const cgroup::CgroupHierarchy& hierarchy, const PodConfig& config) const {
  if (own.empty()) {
    return {};
  }
  GANTRY_TRY([[maybe_unused]] const cgroup::Cgroup same,
             cgroup::Cgroup::Create(hierarchy, own_path));
  return made ? pod.Update(PodLimits(config.resources, config.overhead)) : Status();
}

Status PodCgroup::Remove(std::chrono::milliseconds limit) const {
  if (!own.empty()) {
    GANTRY_CHECK_OK(own.Kill(limit));
    GANTRY_CHECK_OK(own.Remove(limit));
  }
  return made ? pod.RemoveIfEmpty() : Status();
}

}  // namespace gantry::task
