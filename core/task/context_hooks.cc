// SPDX-License-Identifier: Apache-2.0
//
// Hooks of a container that the core runs for its backend.
#include <gantry/toolkit/files/files.h>

#include "core/async/ask.h"
#include "core/async/loop.h"
#include "core/backend/context.h"
#include "core/config/config.h"
#include "core/task/contexts.h"
#include "core/task/sandboxes.h"

namespace gantry::task {

Result<std::unique_ptr<hooks::ContainerHooks>> ContainerContextImpl::ReadHooks() {
  struct Place {
    std::string bundle;
    SandboxContext& sandbox;
  };

  // It is the container's as long as the backend has a call of it.
  GANTRY_TRY(const Place place, async::Call(parts_.services.loop, [this]() -> Result<Place> {
               const ContainerPtr self = container_.lock();
               if (!self || !self->sandbox) {
                 return Fail(Code::kNotFound, "container '{}' is not there any more",
                             init_->container().str());
               }
               return Place{self->bundle, *self->sandbox->context};
             }));
  // Without the file, in the last of many tries to remove it all, none is known.
  const std::string spec =
      ReadFile(place.bundle + "/config.json", parts_.config.limits.max_spec_bytes).value_or("");
  auto read =
      std::make_unique<hooks::ContainerHooks>(init_->container(), place.bundle, place.sandbox);
  GANTRY_CHECK_OK(read->Read(spec));
  return read;
}

Result<InsideHooks> ContainerContextImpl::BeginHooks() {
  const MutexLock lock(hooks_mutex_);
  GANTRY_TRY(hooks_, ReadHooks());
  GANTRY_CHECK_OK(hooks_->Begin());
  return hooks_->inside();
}

Status ContainerContextImpl::HaveHooks() {
  if (!hooks_) {
    GANTRY_TRY(hooks_, ReadHooks());
    hooks_->Recover();
  }
  return {};
}

bool ContainerContextImpl::IsStarting() {
  const MutexLock lock(hooks_mutex_);
  return HaveHooks() && hooks_->IsStarting();
}

Status ContainerContextImpl::RunHooks(HookPoint point, HostPid pid) {
  const MutexLock lock(hooks_mutex_);
  GANTRY_CHECK_OK(HaveHooks());
  switch (point) {
    case HookPoint::kCreate:
      return hooks_->Create(pid);
    case HookPoint::kStart:
      return hooks_->Start(pid);
    case HookPoint::kDelete:
      hooks_->Delete();
      return {};
  }
  return Fail(Code::kInvalidArgument, "run the hooks of container '{}': no such point of its life",
              init_->container().str());
}

}  // namespace gantry::task
