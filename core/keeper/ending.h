// SPDX-License-Identifier: Apache-2.0
//
// The end of one instance without the engine, pass by pass, by the keeper or by the shim: all
// that its last resort names is killed; then the last resort's command does what only it can
// (hooks, units of systemd); then what is left is removed.
//
// The command is run once. While somebody else holds a lock on its folder, as the run of the
// same runtime's `delete` does that the engine has left behind, it waits: who has deleted the
// container already leaves the command nothing to do.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "core/link/messages.h"
#include "core/os/spawn.h"

namespace gantry::keeper {

/// How whoever ends instances runs their commands.
struct CleanupCalls {
  std::function<Result<os::PendingSpawn>(const link::Command&)> spawn;
  /// It could not be run. The rest goes on without it.
  std::function<void(const Error&)> failed;
};

/// Thread: one. Blocks: never for long.
class Ending {
 public:
  explicit Ending(CleanupCalls calls) : calls_(std::move(calls)) {}

  /// One pass, by what the last resort says now. True: there is something left to do.
  bool GoOn(const link::LastResort& last_resort);
  /// There is no more time: a command that still runs is killed, and what can go is removed.
  void GiveUp(const link::LastResort& last_resort);

 private:
  /// True: not done yet.
  bool Cleanup(const link::Command& command);
  bool IsLocked(const std::string& folder);

  CleanupCalls calls_;
  /// It has been run, or cannot be.
  bool begun_ = false;
  std::optional<os::PendingSpawn> running_;
  /// Keeps others of the same purpose off.
  UniqueFd lock_;
};

/// What `CleanupCalls::spawn` is to start: `command` in a session of its own, with nothing open,
/// in its folder if that is there.
os::SpawnRequest RequestOf(const link::Command& command);

}  // namespace gantry::keeper
