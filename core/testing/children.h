// SPDX-License-Identifier: Apache-2.0
//
// The children of the test program, as the keeper has its own.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>

#include <gantry/host_process.h>
#include <gantry/toolkit/sync/mutex.h>

#include "core/os/spawn.h"

namespace gantry::fakes {

/// There is one for the program. Thread: any.
class Children {
 public:
  static Children& Of();

  /// Orphans come to this program, and all children are collected, from now on.
  void AdoptOrphans();
  bool AdoptsOrphans() const;

  /// Starts one, which nobody else collects meanwhile. Errors: as `os::SpawnProcess`.
  Result<os::SpawnResult> Spawn(const os::SpawnRequest& request);
  /// How that child has ended, if it has. Blocks: never.
  std::optional<WaitStatus> Ended(pid_t pid);
  /// It has ended, and was collected.
  bool WasCollected(pid_t pid);

 private:
  Children() = default;
  void CollectAll() GANTRY_REQUIRES(mutex_);

  mutable Mutex mutex_;
  bool adopts_orphans_ GANTRY_GUARDED_BY(mutex_) = false;
  std::map<pid_t, WaitStatus> ended_ GANTRY_GUARDED_BY(mutex_);
};

}  // namespace gantry::fakes
