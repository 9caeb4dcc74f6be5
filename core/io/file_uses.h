// SPDX-License-Identifier: Apache-2.0
//
// Tells when somebody opens or reads a file. All that is watched shares one inotify
// instance: a node's root has few of them (fs.inotify.max_user_instances, 128 by itself),
// and kubelet, systemd and others need theirs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include <gantry/error.h>

#include "core/async/loop.h"
#include "core/os/fifo.h"

namespace gantry::io {

/// Names one watch. 0: none.
using UseId = uint64_t;

/// Thread: that of `loop`.
class FileUses {
 public:
  explicit FileUses(async::Loop& loop) : loop_(loop) {}

  FileUses(const FileUses&) = delete;
  FileUses& operator=(const FileUses&) = delete;
  ~FileUses();

  /// Calls `function` after each use of the file behind `fd`, and now and then without one.
  /// Errors: the kernel has no instance, or no watch, left. Owner: `fd` is borrowed, and
  /// only for this call.
  Result<UseId> Watch(int fd, std::function<void()> function);
  /// Again: harmless.
  void Unwatch(UseId use);

 private:
  struct Use {
    int file = 0;
    std::function<void()> function;
  };

  void OnUsed();

  async::Loop& loop_;
  std::optional<os::FileUse> kernel_;
  async::WatchId readable_;
  UseId next_ = 1;
  std::map<UseId, Use> uses_;
};

}  // namespace gantry::io
