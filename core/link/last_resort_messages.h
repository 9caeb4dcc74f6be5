// SPDX-License-Identifier: Apache-2.0
//
// What the keeper does about an instance when there is no engine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gantry/toolkit/proto/proto_message.h>

#include "core/link/command.h"
#include "core/link/message_type.h"
#include "core/link/process_messages.h"

namespace gantry::link {

/// What must die for an instance to have ended.
struct LastResort {
  /// Absent: it has no process yet.
  std::optional<ProcessRef> init;
  /// Killed besides init: VMM, sentry, gofers, exec'ed processes without a cgroup.
  std::vector<ProcessRef> processes;
  /// Directories whose processes are all this instance's: cgroup.kill where there is
  /// one (v2), else every process listed there and below.
  std::vector<std::string> cgroup_dirs;
  /// Mount points of ours, for the record (containerd unmounts the rootfs itself).
  std::vector<std::string> mounts;
  /// Removed with all in them once everything is dead: where an OCI runtime keeps
  /// what it knows of the container. The cgroup directories are removed, too.
  std::vector<std::string> state_dirs;
  /// Detached once everything is dead: mounts in the bundle that containerd does not
  /// know of. Of memory only, since the keeper may not wait for a disk.
  std::vector<std::string> memory_mounts;
  /// Run once when everything is dead, before anything is removed.
  std::optional<Command> cleanup;

  void Each(this auto& self, auto&& field) {
    field(1, self.init);
    field(2, self.processes);
    field(3, self.cgroup_dirs);
    field(4, self.mounts);
    field(5, self.state_dirs);
    field(6, self.memory_mounts);
    field(7, self.cleanup);
  }
};

/// engine -> keeper and, in a snapshot, back: how the keeper alone can end the
/// instance. The newest replaces the one before. No answer.
struct Protect {
  static constexpr Type kType = Type::kProtect;

  uint64_t instance = 0;
  LastResort last_resort;

  void Each(this auto& self, auto&& field) {
    field(1, self.instance);
    field(2, self.last_resort);
  }
};

/// engine -> keeper: Task/Delete was answered for the instance. containerd's
/// `delete` that follows gets these values at once, without the engine.
/// Held for some minutes; a forgotten instance that was not deleted by then is removed.
struct Forget {
  static constexpr Type kType = Type::kForget;

  uint64_t instance = 0;
  uint32_t pid = 0;
  uint32_t status = 0;
  int64_t exited_at_ns = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.instance);
    field(2, self.pid);
    field(3, self.status);
    field(4, self.exited_at_ns);
  }
};

}  // namespace gantry::link
