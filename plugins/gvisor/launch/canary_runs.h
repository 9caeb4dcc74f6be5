// SPDX-License-Identifier: Apache-2.0
//
// Which builds of runsc have been proved by a canary. The first sandbox that uses a build on a
// platform runs it, others that come meanwhile wait for what it shows.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/toolkit/sync/mutex.h>

#include "plugins/gvisor/launch/canary.h"
#include "plugins/gvisor/launch/proof_file.h"

namespace gantry::gvisor {

/// A build that failed is tried again after that time: what was wrong may have been the node. Pods
/// do not wait for it but one, whose start it delays.
inline constexpr std::chrono::minutes kNextCanary{5};

/// Thread: workers.
class CanaryRuns {
 public:
  using Prove = std::function<Status(SandboxContext&, const Runsc&, const CanaryRequest&)>;
  using Clock = std::function<std::chrono::steady_clock::time_point()>;

  explicit CanaryRuns(Prove prove = ProveRunsc, Clock clock = std::chrono::steady_clock::now)
      : prove_(std::move(prove)), clock_(std::move(clock)) {}

  /// That it has been proved, by now or by an engine before. What a canary shows is kept in
  /// `root`, too. Errors: as `ProveRunsc`; kDeadlineExceeded: another sandbox's canary is
  /// still under way. Blocks: for a canary.
  Status Require(SandboxContext& context, const Runsc& runsc, const std::string& root,
                 const CanaryRequest& wanted);

 private:
  struct Entry {
    bool running = false;
    /// Of this build; nothing is known where `known` is false.
    bool known = false;
    FileIdentity runsc;
    FileIdentity sentry;
    Status shown;
    std::chrono::steady_clock::time_point at;
  };

  bool Knows(const Entry& entry, const Runsc& runsc) const;
  Status FindOut(SandboxContext& context, const Runsc& runsc, const std::string& root,
                 const CanaryRequest& wanted) const;

  const Prove prove_;
  const Clock clock_;
  /// Not held while a canary runs.
  Mutex mutex_;
  std::condition_variable ended_;
  /// By path and platform.
  std::map<std::pair<std::string, std::string>, Entry> entries_ GANTRY_GUARDED_BY(mutex_);
};

}  // namespace gantry::gvisor
