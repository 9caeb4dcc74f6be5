// SPDX-License-Identifier: Apache-2.0
//
// The calls of a container that its backend may leave out (kUnimplemented): they are then done in
// the container's cgroups. Without cgroups the backend's answer stands.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gantry/container.h>
#include <gantry/error.h>
#include <gantry/toolkit/cgroup/cgroup.h>

#include "core/stats/metrics.h"
#include "core/task/backend_call.h"

namespace gantry::task {

/// The backend has left that call out.
bool IsLeftOut(const Status& status);

/// What an update in the cgroups has to know besides its limits.
struct CgroupUpdate {
  const cgroup::CgroupHierarchy& node;
  cgroup::CgroupResources resources;
  /// Of the container, for the shares of its config.json.
  std::string bundle;
  size_t max_spec_bytes = 0;
  /// By which its cpu.weight is made of shares; nothing: to be found out, and then set.
  std::optional<cgroup::CpuWeightFormula> formula;
};

/// Thread: the worker of the call that it is made for.
class CgroupDefaults {
 public:
  explicit CgroupDefaults(const BackendCall& call) : call_(call) {}

  /// Where there is no cgroup any more, no process is left to signal.
  Status KillAll(uint32_t signal, std::chrono::milliseconds limit) const;
  Status Pause(std::chrono::milliseconds limit) const;
  Status Resume(std::chrono::milliseconds limit) const;
  /// `json`: OCI LinuxResources, as `update.resources` has them.
  Status Update(const std::string& json, CgroupUpdate& update) const;
  /// What a backend measures is told as `node` would have it.
  Result<stats::TypedMessage> Stats(cgroup::CgroupMode node) const;
  /// Errors: kResourceExhausted: more than one answer can tell.
  Result<std::vector<ProcessInfo>> Processes() const;

 private:
  /// To be done in the cgroups.
  template <class R>
  bool IsOurs(const R& answer) const {
    return !answer && answer.error().code == Code::kUnimplemented && !call_.cgroup.empty();
  }

  const BackendCall& call_;
};

}  // namespace gantry::task
