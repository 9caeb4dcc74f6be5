// SPDX-License-Identifier: Apache-2.0
//
// The host's processes that backends asked for, as the engine sees them: the
// keeper starts and reaps them, this registry hands each end to whoever holds
// the process. A process is on record at the keeper until somebody here has
// said that its end is written down.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/process.h>
#include <gantry/toolkit/process/process_id.h>
#include <gantry/toolkit/sync/mutex.h>
#include <gantry/unique_fd.h>

#include "core/async/co.h"
#include "core/keeper_client/keeper_link.h"
#include "core/os/process.h"
#include "core/os/spare_fds.h"

namespace gantry::keeper_client {

class HostProcesses;

/// One process. When the last holder lets go of it, its end is acknowledged,
/// unless a task is bound to it: then the task does that, once the end is on
/// record. Thread: any, but for what says loop.
class WatchedProcess final : public HostProcess {
 public:
  WatchedProcess(ProcessId id, UniqueFd pidfd, std::shared_ptr<os::SpareFds> spares)
      : id_(id), pidfd_(std::move(pidfd)), spares_(std::move(spares)) {}

  HostPid pid() const override { return HostPid{id_.pid}; }

  uint64_t start_time() const override { return id_.start_time; }

  const ProcessId& id() const { return id_; }

  Status Signal(int signal) override;
  std::optional<WaitStatus> Ended() const override;
  Result<WaitStatus> Wait(std::chrono::milliseconds limit) override;

  /// Calls `then` once with the end, at once where it has ended. One callback
  /// is kept. Thread: loop.
  void OnEnd(std::function<void(WaitStatus)> then);

  /// The end is somebody's business: only `HostProcesses::Release` acknowledges it.
  /// `by`: whose process it is; never looked into. Thread: loop.
  void MarkBound(const void* by) { bound_by_ = by; }

  /// Thread: any.
  bool IsBoundBy(const void* other) const { return bound_by_ == other; }

 private:
  friend class HostProcesses;
  void End(WaitStatus status);

  const ProcessId id_;
  /// Of an adopted one: none, who signals it opens one.
  const UniqueFd pidfd_;
  const std::shared_ptr<os::SpareFds> spares_;
  std::atomic<const void*> bound_by_ = nullptr;
  /// Guards `ended_`: workers wait for what the loop sets.
  mutable Mutex mutex_;
  std::condition_variable changed_;
  std::optional<WaitStatus> ended_ GANTRY_GUARDED_BY(mutex_);
  std::function<void(WaitStatus)> then_;
};

using WatchedProcessPtr = std::shared_ptr<WatchedProcess>;

/// Thread: loop.
class HostProcesses {
 public:
  HostProcesses(async::Loop& loop, KeeperLink& link) : loop_(loop), link_(link) {}

  /// `group`: as with `KeeperLink::Spawn`.
  async::Task<Result<WatchedProcessPtr>> Spawn(SpawnRequest request, std::string group = {});
  /// With `start_time` 0: the newest process of that pid. `name`: as the tag of a spawn.
  async::Task<Result<WatchedProcessPtr>> Adopt(HostPid pid, uint64_t start_time,
                                               std::string name = {});
  /// Null where nobody holds it: then it has to be adopted. Thread: any.
  WatchedProcessPtr FindHeld(const ProcessId& process) const;
  /// Null where no engine before this one spawned it, or its end was seen long ago.
  WatchedProcessPtr FindSpawned(std::string_view name);
  /// What this engine and those before it spawned under names that begin with
  /// `prefix` and nobody has released.
  std::vector<ProcessId> SpawnedBelow(std::string_view prefix) const;

  /// All of these, with their names.
  const std::map<ProcessId, std::string>& Spawned() const { return names_; }

  /// The end of `process` is written down, or matters no more.
  void Release(const ProcessId& process);

  /// Whoever asks for such a name from now on is told that nothing was spawned under it. What
  /// runs, or has not been released, keeps its name. Not empty: it ends where names are parted.
  void ForgetEnded(const std::string& prefix);

  /// Somebody here sees to that end, though he asks for no process.
  void Claim(const ProcessId& process) { unclaimed_.erase(process); }

  /// All that engines before this one left has been taken up: what they had without a name,
  /// and nobody has asked for, matters no more.
  void ReleaseUnclaimed();

  /// Its end is known to the keeper and has not been acknowledged.
  bool IsUnacknowledged(const ProcessId& process) const;

  /// From the keeper.
  void OnExit(const link::Exit& exit);
  void OnNamedSpawn(const link::NamedSpawn& spawn);
  void OnEndedNames(const link::EndedNames& ended);
  void OnWatched(const link::Watched& watched);
  void OnSnapshotEnd();

  size_t size() const {
    const MutexLock lock(mutex_);
    return processes_.size();
  }

 private:
  /// The last holder of a process that no task is bound to has let go.
  void ReleaseUnheld(const ProcessId& process);
  WatchedProcessPtr Enter(ProcessId id, UniqueFd pidfd);
  WatchedProcessPtr FindEnded(std::string_view name);
  void RememberNames(const ProcessId& process, WaitStatus status);

  async::Loop& loop_;
  KeeperLink& link_;
  const std::shared_ptr<os::SpareFds> spares_ = std::make_shared<os::SpareFds>();
  /// Guards `processes_`, which workers look into. What changes it is on the loop.
  mutable Mutex mutex_;
  std::map<ProcessId, std::weak_ptr<WatchedProcess>> processes_ GANTRY_GUARDED_BY(mutex_);
  /// Ends of processes that nobody here has asked for yet: those of an engine
  /// before this one, and of orphans that are about to be adopted.
  std::map<ProcessId, WaitStatus> ends_;
  /// What the keeper watches since an engine before this one, and nobody here has asked for.
  std::set<ProcessId> watched_;
  /// Of both, those that were there before this engine and have no name.
  std::set<ProcessId> unclaimed_;
  /// What `FindSpawned` has not found yet.
  std::map<std::string, ProcessId, std::less<>> named_;
  /// Of names that no process has any more, how the last one ended, as engines before this one
  /// have acknowledged it.
  std::map<std::string, std::pair<ProcessId, WaitStatus>, std::less<>> ended_names_;
  /// Names of all that have one.
  std::map<ProcessId, std::string> names_;
};

}  // namespace gantry::keeper_client
