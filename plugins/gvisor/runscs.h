// SPDX-License-Identifier: Apache-2.0
//
// The builds of runsc in use: each is asked once what it takes, and proved once, and again when
// its file has been replaced.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <gantry/error.h>

#include "plugins/gvisor/launch/runsc.h"
#include "plugins/gvisor/proofs.h"

namespace gantry::gvisor {

/// Thread: any.
class Runscs {
 public:
  /// Of the program at `path`. Errors: kFailedPrecondition saying what is wrong with it.
  /// Blocks: where it is new, for its answers.
  Result<std::shared_ptr<const Runsc>> Get(const std::string& path);
  /// The same, of a build that starts sandboxes. Errors: as `Proofs::Require`.
  /// Blocks: where it is new, for a canary. Thread: workers.
  Result<std::shared_ptr<const Runsc>> GetProven(const std::string& path, SandboxContext& context,
                                                 const std::string& root, const CanaryPlan& plan);

 private:
  /// Guards what follows; held while one is asked.
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Runsc>> known_;
  Proofs proofs_;
};

}  // namespace gantry::gvisor
