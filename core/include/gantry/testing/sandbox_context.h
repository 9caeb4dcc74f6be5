// SPDX-License-Identifier: Apache-2.0
//
// What the core lends to a sandbox, for a test: processes are started as the keeper starts them
// and are children of the test; descriptors, state and tags outlive a restart of the engine, which
// the test makes whenever it wants one; what the backend says is remembered. A backend's own test
// makes its sandbox with one of these, no containerd and no gantry needed.
//
// The names of this folder begin with Fake and stand in the namespace gantry: within it a
// namespace `testing` would hide GoogleTest's.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/context.h>
#include <gantry/testing/host_process.h>
#include <gantry/toolkit/sync/mutex.h>

namespace gantry {

/// What becomes of a process whose parent has ended.
enum class Orphans {
  /// It is no child of the test's, and cannot be adopted.
  kLeft,
  /// From now on the whole program is, as the keeper is, who orphans come to (prctl(2),
  /// PR_SET_CHILD_SUBREAPER), and whenever a fake looks for an end it collects every child of the
  /// program: nothing else in it may wait for children of its own.
  kAdopted,
};

/// Thread: the calls, any; the members, while no other thread calls. Makes the program ignore
/// SIGPIPE, as the engine does.
class FakeSandboxContext : public SandboxContext {
 public:
  /// One call of `Spawn`, as it was asked for.
  struct Asked {
    std::vector<std::string> argv;
    std::vector<std::string> env;
    std::string cwd;
    std::string tag;
    /// The file behind `SpawnRequest::program`; empty: there was none.
    std::string program;
    std::vector<std::string> cgroups;
  };

  explicit FakeSandboxContext(Orphans orphans = Orphans::kLeft);
  ~FakeSandboxContext() override;

  /// All that a `SpawnRequest` can ask for, where the test has the rights to it. More than the
  /// core takes: `program` may be a script, which then is executed by its path.
  Result<std::shared_ptr<HostProcess>> Spawn(SpawnRequest request) override;
  /// What was spawned here; with `Orphans::kAdopted`, what runs or has come to the test.
  Result<std::shared_ptr<HostProcess>> Adopt(HostPid pid) override;
  Result<std::shared_ptr<HostProcess>> AdoptAs(HostPid pid, std::string_view tag) override;
  Result<std::shared_ptr<HostProcess>> Recover(HostPid pid, uint64_t start_time) override;
  /// What had that tag at the last `RestartEngine`, once.
  std::shared_ptr<HostProcess> FindSpawned(std::string_view tag) override;
  /// `ready` is called on a thread of the watch's own.
  Result<std::unique_ptr<Watch>> WatchReadable(int fd, std::function<void()> ready) override;

  Status Bind(std::shared_ptr<HostProcess> process) override;
  void SetPid(HostPid pid) override;
  void Exited(ExitStatus status) override;

  /// Errors: kInvalidArgument for a name that is empty or longer than 64 bytes.
  Status Store(std::string_view name, const UniqueFd& fd) override;
  Result<UniqueFd> Take(std::string_view name) override;
  void Drop(std::string_view name) override;
  /// Errors: kInvalidArgument above `kMaxSaved`.
  Status Save(std::string text) override;

  void Log(LogLevel level, std::string_view message) override;
  void Count(std::string_view name, uint64_t amount) override;

  std::chrono::milliseconds TimeLeft() const override { return time_left; }

  /// The engine ends, and the next one begins: what was spawned or adopted under a tag is found by
  /// it from now on, what is stored and saved is there, and the sandbox is bound to nothing. The
  /// test destroys the backend's objects before it, as the engine's end does.
  void RestartEngine();
  /// As if an engine before this one had spawned `process` under `tag`.
  void LeaveBehind(std::string tag, std::shared_ptr<HostProcess> process);

  /// Of those that were spawned how many have not ended.
  size_t Alive() const;
  /// The last that was spawned or adopted under that tag since `RestartEngine`; null: none.
  std::shared_ptr<HostProcess> SpawnedUnder(std::string_view tag) const;
  /// The tags of `asked`, in order.
  std::vector<std::string> Tags() const;
  std::vector<std::string> StoredNames() const;
  /// Waits for a line of the log that has these words. False: none has come within `limit`.
  bool WaitForLog(std::string_view words,
                  std::chrono::milliseconds limit = std::chrono::seconds(20));

  /// To be set by the test: what `TimeLeft` gives, and what a spawn is asked first, whose error
  /// is its answer then.
  std::chrono::milliseconds time_left = std::chrono::milliseconds::max();
  std::function<Status(const SpawnRequest& request)> on_spawn;

  /// What the backend has done. `asked` has each call of `Spawn`, `spawned` what came of those
  /// that succeeded.
  std::vector<Asked> asked;
  std::vector<std::shared_ptr<HostProcess>> spawned;
  std::map<std::string, UniqueFd, std::less<>> stored;
  std::string blob;
  std::shared_ptr<HostProcess> bound;
  HostPid pid;
  std::optional<ExitStatus> exited;
  std::vector<std::string> log;
  std::map<std::string, uint64_t, std::less<>> counts;

 private:
  using ByTag = std::map<std::string, std::shared_ptr<HostProcess>, std::less<>>;

  void Keep(const std::shared_ptr<HostProcess>& process, std::string_view tag)
      GANTRY_REQUIRES(mutex_);

  const Orphans orphans_;
  /// Guards the members, those above too, but for what the test sets.
  mutable Mutex mutex_;
  std::condition_variable logged_;
  std::map<int32_t, std::shared_ptr<HostProcess>> known_ GANTRY_GUARDED_BY(mutex_);
  /// Of this engine, and of those before it.
  ByTag tagged_ GANTRY_GUARDED_BY(mutex_);
  ByTag left_ GANTRY_GUARDED_BY(mutex_);
};

}  // namespace gantry
