// SPDX-License-Identifier: Apache-2.0
//
// The cgroups of a pod: the one that Kubernetes made for it, and below that one
// of our own for what the sandbox itself needs (a holder of namespaces, a sentry,
// a VMM). The containers' are made by their runtime, beside ours.
#pragma once

#include <string>
#include <string_view>

#include <gantry/error.h>
#include <gantry/pod_config.h>
#include <gantry/toolkit/cgroup/cgroup.h>

namespace gantry::task {

/// The path that `cgroup_parent` names, from the root of the hierarchy on: the
/// path itself, or where systemd keeps a slice (`a-b.slice` is in `a.slice`).
/// Errors: kInvalidArgument. Source: systemd.slice(5).
Result<std::string> PodCgroupPath(std::string_view cgroup_parent);

/// The limits as a cgroup takes them, what the sandbox costs on top.
cgroup::CgroupResources PodLimits(const PodResources& resources, const PodResources& overhead);

struct PodCgroup {
  /// All of the pod. Empty: nobody said where it belongs.
  cgroup::Cgroup pod;
  /// What the sandbox itself runs in.
  cgroup::Cgroup own;
  /// `pod` was not there, so it is ours to remove.
  bool made = false;

  std::string own_path;

  /// Those of the configuration. Nothing is made; `made` says what Create would do.
  static Result<PodCgroup> Find(const cgroup::CgroupHierarchy& hierarchy, const PodConfig& config,
                                std::string_view id);
  /// Makes what is missing. `pod` gets the limits only where it is made here: else
  /// they are the business of who made it. Again: fine.
  /// Blocks: never for long. Thread: workers.
  Status Create(const cgroup::CgroupHierarchy& hierarchy, const PodConfig& config) const;
  /// Kills what is in `own` and removes what was made, `pod` once nothing
  /// else is in it. Again: fine.
  /// Blocks: up to `limit`. Thread: workers.
  Status Remove(std::chrono::milliseconds limit) const;
};

}  // namespace gantry::task
