// SPDX-License-Identifier: Apache-2.0
//
// OOM kills below a cgroup (v2), as far as nobody has told them. The `oom_kill` of its
// memory.events counts those of all cgroups below it, also of those that are gone. Each
// watch of a container's cgroup below claims what its own counter shows; what is left is of a
// cgroup that was removed before its watch has seen it.
// Source: Linux, Documentation/admin-guide/cgroup-v2.rst, memory.events.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <gantry/error.h>
#include <gantry/toolkit/sync/mutex.h>

namespace gantry::cgroup {

/// Thread: any. Blocks: on the file.
class OomKillsBelow {
 public:
  explicit OomKillsBelow(std::string dir) : path_(std::move(dir) + "/memory.events") {}

  /// The one of all watches of containers below `dir`. All kills of before count as told, those of
  /// another watch too that it has not looked at. Null: `dir` does not count, as the root of the
  /// tree.
  static std::shared_ptr<OomKillsBelow> Of(const std::string& dir);

  /// So many more are told by the counter of a cgroup below.
  void Claim(uint64_t kills);
  /// True: there was one that nobody has told; it is told now.
  bool ClaimOne();

 private:
  Result<uint64_t> Read() const;
  bool Begin();

  const std::string path_;
  /// Guards what follows: watches are opened on workers.
  Mutex mutex_;
  /// Of the counter, what has been told.
  uint64_t told_ GANTRY_GUARDED_BY(mutex_) = 0;
};

}  // namespace gantry::cgroup
