// SPDX-License-Identifier: Apache-2.0
#include "core/testing/children.h"

#include <sys/prctl.h>
#include <sys/wait.h>

#include <chrono>

namespace gantry::fakes {
namespace {

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Children& Children::Of() {
  static Children children;
  return children;
}

void Children::AdoptOrphans() {
  const MutexLock lock(mutex_);
  adopts_orphans_ = true;
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

bool Children::AdoptsOrphans() const {
  const MutexLock lock(mutex_);
  return adopts_orphans_;
}

void Children::CollectAll() {
  int raw = 0;
  for (pid_t pid = waitpid(-1, &raw, WNOHANG); pid > 0; pid = waitpid(-1, &raw, WNOHANG)) {
    ended_[pid] = {raw, NowNs()};
  }
}

Result<os::SpawnResult> Children::Spawn(const os::SpawnRequest& request) {
  // Held for all of it only where others would collect what `SpawnProcess` collects itself.
  if (!AdoptsOrphans()) {
    return os::SpawnProcess(request);
  }
  const MutexLock lock(mutex_);
  CollectAll();
  auto spawned = os::SpawnProcess(request);
  if (spawned) {
    ended_.erase(spawned->process.pid);
  }
  return spawned;
}

std::optional<WaitStatus> Children::Ended(pid_t pid) {
  const MutexLock lock(mutex_);
  if (adopts_orphans_) {
    CollectAll();
    const auto found = ended_.find(pid);
    return found == ended_.end() ? std::nullopt : std::optional(found->second);
  }
  int raw = 0;
  return waitpid(pid, &raw, WNOHANG) == pid ? std::optional(WaitStatus{raw, NowNs()})
                                            : std::nullopt;
}

bool Children::WasCollected(pid_t pid) {
  const MutexLock lock(mutex_);
  if (adopts_orphans_) {
    CollectAll();
  }
  return ended_.contains(pid);
}

}  // namespace gantry::fakes
