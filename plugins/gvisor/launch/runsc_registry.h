// SPDX-License-Identifier: Apache-2.0
//
// The builds of runsc in use: each is asked once what it takes, and proved once, and again when
// its file has been replaced.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <gantry/error.h>
#include <gantry/toolkit/sync/mutex.h>

#include "plugins/gvisor/launch/canary_runs.h"
#include "plugins/gvisor/launch/runsc.h"

namespace gantry::gvisor {

class Launcher;

/// Thread: any.
class RunscRegistry {
 public:
  explicit RunscRegistry(CanaryRuns::Prove prove = ProveRunsc) : proofs_(std::move(prove)) {}

  /// Of the program at `path`; sixteen at the most stay open. Errors:
  /// kFailedPrecondition saying what is wrong with it. Blocks: where it is new, for its answers.
  Result<std::shared_ptr<const Runsc>> Get(const std::string& path);
  /// The same, and how it starts sandboxes: where they are by `runsc create`, the log says so
  /// once for each build and platform. Errors: those of `CanaryRuns::Require` that show nothing.
  /// Blocks: where it is new, for a canary. Thread: workers.
  Result<std::shared_ptr<const Launcher>> GetLauncher(const std::string& path,
                                                      SandboxContext& context,
                                                      const std::string& root,
                                                      const CanaryRequest& wanted);
  /// The same, of a build whose processes gantry starts itself. Errors: kFailedPrecondition for
  /// another one.
  Result<std::shared_ptr<const Runsc>> GetProven(const std::string& path, SandboxContext& context,
                                                 const std::string& root,
                                                 const CanaryRequest& wanted);

  /// How many sandboxes were to be started by `runsc create`.
  uint64_t creates() const { return creates_; }

  void CountCreate() { ++creates_; }

 private:
  void WarnOnce(SandboxContext& context, const Launcher& launcher, const std::string& platform);

  std::atomic<uint64_t> creates_ = 0;
  /// Held while one is asked.
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<const Runsc>> known_ GANTRY_GUARDED_BY(mutex_);
  /// Builds and platforms that the log has told of.
  std::map<std::pair<std::string, std::string>, std::pair<FileIdentity, FileIdentity>> told_
      GANTRY_GUARDED_BY(mutex_);
  CanaryRuns proofs_;
};

}  // namespace gantry::gvisor
