// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/launch/canary_runs.h"

#include <algorithm>

#include <gantry/format.h>

namespace gantry::gvisor {
namespace {

/// Longer than a canary takes that fails at each step.
constexpr std::chrono::seconds kMostWaited{60};

/// Else it was for want of time or memory.
bool ShowsSomething(const Status& shown) {
  return shown || shown.error().code == Code::kFailedPrecondition;
}

}  // namespace

bool CanaryRuns::Knows(const Entry& entry, const Runsc& runsc) const {
  return entry.known && entry.runsc == runsc.identity && entry.sentry == runsc.sentry_identity &&
         (entry.shown || clock_() < entry.at + kNextCanary);
}

Status CanaryRuns::FindOut(SandboxContext& context, const Runsc& runsc, const std::string& root,
                           const CanaryRequest& wanted) const {
  const auto proof = ReadProof(root, runsc, wanted.platform);
  if (proof && proof->failure.empty()) {
    return {};
  }
  const auto begin = clock_();
  Status shown = prove_(context, runsc, wanted);
  if (!ShowsSomething(shown)) {
    return shown;
  }
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(clock_() - begin);
  context.Log(
      shown ? LogLevel::kInfo : LogLevel::kDebug,
      shown ? Format("'{}' starts sandboxes: a canary took {} ms", runsc.runsc.path, took.count())
            : shown.error().message);
  const Status written =
      WriteProof(root, runsc, wanted.platform, shown ? "" : shown.error().message);
  if (!written) {
    context.Log(LogLevel::kWarning,
                "the next engine will run a canary again: " + written.error().message);
  }
  return shown;
}

Status CanaryRuns::Require(SandboxContext& context, const Runsc& runsc, const std::string& root,
                           const CanaryRequest& wanted) {
  const auto limit = std::min<std::chrono::milliseconds>(context.TimeLeft(), kMostWaited);
  const auto deadline = std::chrono::steady_clock::now() + limit;
  MutexLock lock(mutex_);
  Entry& entry = entries_[{runsc.runsc.path, wanted.platform}];
  while (!Knows(entry, runsc) && entry.running) {
    if (ended_.wait_until(lock.native(), deadline) == std::cv_status::timeout) {
      return Fail(Code::kDeadlineExceeded,
                  "prove '{}' by a canary sandbox: the one of another sandbox is under way",
                  runsc.runsc.path);
    }
  }
  if (Knows(entry, runsc)) {
    return entry.shown;
  }
  entry.running = true;
  lock.Unlock();
  const Status shown = FindOut(context, runsc, root, wanted);
  lock.Lock();
  entry.running = false;
  if (ShowsSomething(shown)) {
    entry.known = true;
    entry.runsc = runsc.identity;
    entry.sentry = runsc.sentry_identity;
    entry.shown = shown;
    entry.at = clock_();
  }
  ended_.notify_all();
  return shown;
}

}  // namespace gantry::gvisor
