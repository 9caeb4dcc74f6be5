// SPDX-License-Identifier: Apache-2.0
//
// Cgroups that the core makes for a container's backend, and systemd's unit of them: on record
// first, so that whoever finds the record can remove what there may be. The unit comes last, when
// the backend has put the container's first process into the cgroup (core/cgroup/scope_unit.h).
#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include <gantry/toolkit/cgroup/cgroup.h>

#include "core/async/ask.h"
#include "core/async/loop.h"
#include "core/backend/call_deadline.h"
#include "core/config/config.h"
#include "core/oci/bundle_spec.h"
#include "core/os/systemd_bus.h"
#include "core/task/container_cgroup.h"
#include "core/task/contexts.h"

namespace gantry::task {
namespace {

std::unexpected<Error> GoneContainer(const ContainerId& id) {
  return Fail(Code::kNotFound, "container '{}' is not there any more", id.str());
}

}  // namespace

Result<std::vector<std::string>> ContainerContextImpl::MakeCgroups(CgroupDevices devices) {
  GANTRY_TRY(const Known known, AskForCgroup());
  if (known.origin == CgroupOrigin::kMade) {
    return known.cgroup.Dirs();
  }
  GANTRY_TRY(const oci::Spec spec,
             oci::ReadSpec(known.bundle, parts_.config.limits.max_spec_bytes));
  GANTRY_TRY(const ContainerCgroup made,
             ContainerCgroup::Find(parts_.services.cgroups, spec.cgroups_path));
  if (made.cgroup.empty()) {
    return std::vector<std::string>();
  }
  GANTRY_TRY(const cgroup::CgroupResources limits, oci::ResourcesOf(spec));
  GANTRY_TRY(const std::vector<cgroup::DeviceRule> rules, oci::DeviceRulesOf(spec));
  const bool with_scope = made.scope.has_value() && os::HasSystemd();
  if (known.origin == CgroupOrigin::kForeign) {
    GANTRY_CHECK_OK(Claim(made, with_scope ? made.scope->unit : ""));
  }
  const auto* const limited = devices == CgroupDevices::kOfSpec ? &rules : nullptr;
  if (Status status = Make(made, limits, limited, with_scope); !status) {
    if (!made.cgroup.Exists()) {
      IgnoreError(RecordCgroup({}, ""), "a removal of what is not there does nothing");
    }
    return std::unexpected(std::move(status).error());
  }
  GANTRY_CHECK_OK(UseMade(made.cgroup));
  return made.cgroup.Dirs();
}

Status ContainerContextImpl::Claim(const ContainerCgroup& made, const std::string& scope) {
  GANTRY_CHECK_OK(made.CheckFree());
  if (!scope.empty()) {
    const auto limit =
        std::min<std::chrono::milliseconds>(cgroup::kScopeLimit, backend::CallDeadline::Left());
    GANTRY_CHECK_OK(
        cgroup::FreeScopeName(scope, made.path, std::chrono::steady_clock::now() + limit));
  }
  return RecordCgroup(made.cgroup, scope);
}

Status ContainerContextImpl::Make(const ContainerCgroup& made,
                                  const cgroup::CgroupResources& limits,
                                  const std::vector<cgroup::DeviceRule>* devices, bool with_scope) {
  GANTRY_CHECK_OK(made.Create(parts_.services.cgroups, limits, devices));
  if (!with_scope || !made.scope) {
    return {};
  }
  auto request = cgroup::ScopeRequestOf(*made.scope, made.path, made.cgroup, limits, devices);
  if (!request) {
    IgnoreError(made.cgroup.RemoveIfEmpty(), "the container's removal tries again");
    return std::unexpected(std::move(request).error());
  }
  const MutexLock lock(scope_mutex_);
  scope_ = *std::move(request);
  return {};
}

Status ContainerContextImpl::StartScope(Deadline by) {
  std::optional<cgroup::ScopeRequest> request;
  {
    const MutexLock lock(scope_mutex_);
    request = std::exchange(scope_, std::nullopt);
  }
  return request ? cgroup::StartScope(*request, by) : Status();
}

Result<ContainerContextImpl::Known> ContainerContextImpl::AskForCgroup() const {
  return async::Call(parts_.services.loop, [this]() -> Result<Known> {
    const ContainerPtr self = container_.lock();
    if (!self) {
      return GoneContainer(init_->container());
    }
    return Known{self->bundle, self->cgroup, self->cgroup_origin};
  });
}

Status ContainerContextImpl::RecordCgroup(const cgroup::Cgroup& cgroup, const std::string& scope) {
  auto write = async::Call(parts_.services.loop, [&]() -> Result<std::function<Status()>> {
    const ContainerPtr self = container_.lock();
    if (!self) {
      return GoneContainer(init_->container());
    }
    GANTRY_CHECK_OK(observer_.OnMakingCgroup(*self, cgroup, scope));
    return self->record.Writer(self->record.Next(ToRecord(*self)));
  });
  if (!write) {
    return std::unexpected(std::move(write).error());
  }
  Status written = (*write)();
  if (!written && !cgroup.empty()) {
    IgnoreError(RecordCgroup({}, ""), "what is on disk does not name them");
  }
  return written;
}

Status ContainerContextImpl::UseMade(const cgroup::Cgroup& cgroup) {
  auto oom = OpenOomWatch(init_->container(), cgroup).value_or(std::unique_ptr<cgroup::OomWatch>());
  const bool used = async::Call(parts_.services.loop, [&] {
    const ContainerPtr self = container_.lock();
    if (!self || self->cgroup_origin != CgroupOrigin::kMaking) {
      return false;
    }
    self->cgroup_origin = CgroupOrigin::kMade;
    observer_.OnCgroup(*self, cgroup, std::move(oom));
    return true;
  });
  if (!used) {
    IgnoreError(cgroup.RemoveIfEmpty(), "it is the backend's mistake");
    return GoneContainer(init_->container());
  }
  return {};
}

}  // namespace gantry::task
