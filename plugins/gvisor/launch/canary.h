// SPDX-License-Identifier: Apache-2.0
//
// A canary: a sandbox with a gofer that is started, runs a program to its end and is removed,
// all by the code that starts pods. A build's help tells what flags it has; that it takes them
// as gantry gives them, and wants no more, only this shows. It takes a tenth of a second.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <gantry/context.h>
#include <gantry/error.h>

#include "plugins/gvisor/launch/runsc.h"

namespace gantry::gvisor {

struct CanaryRequest {
  std::string platform;
  /// Directories, the first one that is there and where programs may be executed is used. A
  /// gofer's root may lie on no other mount (noexec).
  std::vector<std::string> directories;
  /// For each step, where the call that it is run for has not less time left.
  std::chrono::milliseconds limit = std::chrono::seconds(10);
};

/// Nothing is left of it, whatever happens.
/// Errors: kFailedPrecondition with the step that failed and gVisor's own words: what was shown
/// is that this build cannot be used here. All others show nothing: kResourceExhausted;
/// kDeadlineExceeded, where the time for the call was over.
/// Blocks: for a tenth of a second; where it fails, for some `limit`s. Thread: workers.
Status ProveRunsc(SandboxContext& context, const Runsc& runsc, const CanaryRequest& wanted);

/// Where a canary for a sandbox with that bundle may run. `root`: of the options.
std::vector<std::string> CanaryDirectories(const std::string& bundle, const std::string& root);

}  // namespace gantry::gvisor
