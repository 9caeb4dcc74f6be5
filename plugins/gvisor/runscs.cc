// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/runscs.h"

#include <utility>

namespace gantry::gvisor {
namespace {

bool IsStill(const FileIdentity& known, const std::string& path) {
  const auto now = FileIdentity::Of(path);
  return now.has_value() && *now == known;
}

}  // namespace

Result<std::shared_ptr<const Runsc>> Runscs::Get(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(path);
  if (found != known_.end() && IsStill(found->second->identity, path) &&
      IsStill(found->second->sentry_identity, found->second->sentry.path)) {
    return found->second;
  }
  GANTRY_TRY(auto probed, ProbeRunsc(path));
  if (const std::string missing = probed->dialect.Missing(); !missing.empty()) {
    return Fail(Code::kFailedPrecondition,
                "use '{}': this build has no '{}', which gantry needs; install a release that has",
                path, missing);
  }
  known_[path] = probed;
  return probed;
}

Result<std::shared_ptr<const Runsc>> Runscs::GetProven(const std::string& path,
                                                       SandboxContext& context,
                                                       const std::string& root,
                                                       const CanaryPlan& plan) {
  GANTRY_TRY(auto runsc, Get(path));
  GANTRY_CHECK_OK(proofs_.Require(context, *runsc, root, plan));
  return runsc;
}

}  // namespace gantry::gvisor
