// SPDX-License-Identifier: Apache-2.0
//
// What may wait is done by a child of the agent's: mounts, limits that make the kernel reclaim
// memory, the end of a cgroup. A file system that hangs holds up the call that is about it, and
// nobody else.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "plugins/vmm/guest/loop.h"

namespace gantry::vmm::guest {

/// Closes all but the standard streams and these. Of a child that was forked.
void CloseAllExcept(std::initializer_list<int> kept);

/// Thread: the loop's.
class Workers {
 public:
  /// At once; more wait.
  static constexpr size_t kMost = 16;
  static constexpr size_t kMaxAnswer = size_t{64} << 10;

  using Work = std::function<Result<std::string>()>;
  using Done = std::function<void(Result<std::string> answer)>;

  explicit Workers(Loop& loop) : loop_(loop) {}

  /// `work` in a child, then `done` here. Errors, for `done`: those of `work`; kInternal: the child
  /// has ended without a word; the kernel's.
  void Run(Work work, Done done);

 private:
  struct Running {
    UniqueFd socket;
    std::string said;
    Done done;
    Loop::Watch watch;
  };

  void Begin(const Work& work, Done done);
  void Hear(uint64_t number);

  Loop& loop_;
  std::map<uint64_t, Running> running_;
  std::deque<std::pair<Work, Done>> waiting_;
  uint64_t last_ = 0;
};

}  // namespace gantry::vmm::guest
