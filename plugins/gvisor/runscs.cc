// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/runscs.h"

#include <utility>

namespace gantry::gvisor {

Result<std::shared_ptr<const Runsc>> Runscs::Get(const std::string& path) {
  const std::lock_guard lock(mutex_);
  GANTRY_TRY(const FileIdentity now, FileIdentity::Of(path));
  const auto found = known_.find(path);
  if (found != known_.end() && found->second->identity == now) {
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

}  // namespace gantry::gvisor
