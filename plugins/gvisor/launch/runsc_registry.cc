// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/launch/runsc_registry.h"

#include <utility>

#include <gantry/format.h>

#include "plugins/gvisor/launch/launcher.h"

namespace gantry::gvisor {
namespace {

/// Each has one or two files open. Pods have their own descriptors of them.
constexpr size_t kMostOpen = 16;

bool IsStill(const FileIdentity& known, const std::string& path) {
  const auto now = FileIdentity::Of(path);
  return now.has_value() && *now == known;
}

}  // namespace

Result<std::shared_ptr<const Runsc>> RunscRegistry::Get(const std::string& path) {
  const MutexLock lock(mutex_);
  const auto found = known_.find(path);
  if (found != known_.end() && IsStill(found->second->identity, path) &&
      IsStill(found->second->sentry_identity, found->second->sentry.path)) {
    return found->second;
  }
  GANTRY_TRY(auto probed, ProbeRunsc(path));
  if (found == known_.end() && known_.size() == kMostOpen) {
    known_.erase(known_.begin());
  }
  known_[path] = probed;
  return probed;
}

void RunscRegistry::WarnOnce(SandboxContext& context, const Launcher& launcher,
                             const std::string& platform) {
  const Runsc& runsc = launcher.runsc();
  {
    const MutexLock lock(mutex_);
    auto& told = told_[{runsc.runsc.path, platform}];
    const std::pair build(runsc.identity, runsc.sentry_identity);
    if (told == build) {
      return;
    }
    told = build;
  }
  context.Log(LogLevel::kWarning,
              Format("pods are started by '{} create' (platform {}), which takes longer, and none "
                     "is pre-booted: {}",
                     runsc.runsc.path, platform, launcher.Reason()));
}

Result<std::shared_ptr<const Launcher>> RunscRegistry::GetLauncher(const std::string& path,
                                                                   SandboxContext& context,
                                                                   const std::string& root,
                                                                   const CanaryRequest& wanted) {
  GANTRY_TRY(const auto runsc, Get(path));
  std::string reason = WhatIsMissing(*runsc);
  if (reason.empty()) {
    const Status proved = proofs_.Require(context, *runsc, root, wanted);
    if (proved) {
      return std::make_shared<DirectLauncher>(runsc);
    }
    if (proved.error().code != Code::kFailedPrecondition) {
      return std::unexpected(proved.error());
    }
    reason = proved.error().message;
  }
  auto launcher = std::make_shared<CreateLauncher>(runsc, std::move(reason));
  WarnOnce(context, *launcher, wanted.platform);
  return launcher;
}

Result<std::shared_ptr<const Runsc>> RunscRegistry::GetProven(const std::string& path,
                                                              SandboxContext& context,
                                                              const std::string& root,
                                                              const CanaryRequest& wanted) {
  GANTRY_TRY(const auto launcher, GetLauncher(path, context, root, wanted));
  if (!launcher->IsDirect()) {
    return Fail(Code::kFailedPrecondition, "use '{}' without 'runsc create': {}", path,
                launcher->Reason());
  }
  return launcher->shared_runsc();
}

}  // namespace gantry::gvisor
