// SPDX-License-Identifier: Apache-2.0
//
// What a backend spawns in one of its calls, so that the call can be cut short: a runtime that
// hangs is not waited for when its container has ended. The core sets it around the call, and
// `SandboxContext::Spawn` tells it (as with call_deadline.h), so no call of the SDK has to carry
// it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/process/process_id.h>
#include <gantry/toolkit/sync/mutex.h>

namespace gantry::backend {

/// Thread: any.
class CallProcesses {
 public:
  /// What this thread spawns as long as it lives belongs to `call` (null: to none); then to the
  /// one from before again. To be destroyed on the same thread.
  class Scope {
   public:
    explicit Scope(std::shared_ptr<CallProcesses> call);
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();

   private:
    std::shared_ptr<CallProcesses> before_;
  };

  /// Of this thread's call; null: there is none.
  static const std::shared_ptr<CallProcesses>& Current();

  /// Kills them, each with its process group, and those that are spawned later: the call fails
  /// with what it makes of that. `reason`: "its container has ended". Again: allowed.
  void End(std::string reason);
  /// Errors: kFailedPrecondition with the reason, after `End`.
  Status Check() const;
  /// It has just been spawned.
  void Add(const ProcessId& process);

 private:
  /// Guards what follows: spawns come from workers, the end from the loop.
  mutable Mutex mutex_;
  std::vector<ProcessId> processes_ GANTRY_GUARDED_BY(mutex_);
  std::string ended_ GANTRY_GUARDED_BY(mutex_);
};

}  // namespace gantry::backend
