// SPDX-License-Identifier: Apache-2.0
//
// What the core lends to one sandbox of a backend, behind the SDK's
// `SandboxContext`: processes by the keeper, its descriptor store, watches on
// the worker pool, the log.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/context.h>
#include <gantry/ids.h>
#include <gantry/toolkit/process/process_id.h>
#include <gantry/toolkit/sync/mutex.h>

#include "core/async/account.h"
#include "core/async/co.h"
#include "core/backend/call_deadline.h"
#include "core/backend/pod_events.h"
#include "core/backend/services.h"
#include "core/link/name_owner.h"

namespace gantry::keeper_client {
class WatchedProcess;
using WatchedProcessPtr = std::shared_ptr<WatchedProcess>;
struct ToStore;
}  // namespace gantry::keeper_client

namespace gantry::backend {

/// Counters of all backends, `backend.name`. Thread: any.
class Counters {
 public:
  void Add(std::string name, uint64_t amount);
  std::map<std::string, uint64_t> All() const;

 private:
  /// Guards `values_`: backends count from workers.
  mutable Mutex mutex_;
  std::map<std::string, uint64_t> values_ GANTRY_GUARDED_BY(mutex_);
};

/// Whose context it is, and where its state goes. Without an id: a backend's own.
struct ContextOptions {
  std::string backend;
  Namespace ns;
  SandboxId id;
  /// Whose its descriptors in the store and its processes are.
  link::NameOwner owner;
  /// The address of its group, whose limits its processes get; "": of no group.
  std::string group;
  /// Keeps the backend's state of the sandbox. Called on workers.
  std::function<Status(std::string blob)> save;
  Counters* counters = nullptr;
  /// What is done on its behalf goes there.
  async::AccountPtr account;
  /// Descriptors that its backend may keep in the store.
  size_t max_stored = SIZE_MAX;
  /// What an engine before this one has stored for it, by its names in the store.
  std::set<std::string> stored;
  /// Of a pod without a pause container.
  std::optional<PodEvents> pod;
};

class Context final : public SandboxContext {
 public:
  Context(const Services& services, ContextOptions options);
  ~Context() override = default;

  Result<std::shared_ptr<HostProcess>> Spawn(SpawnRequest request) override;
  Result<std::shared_ptr<HostProcess>> Adopt(HostPid pid) override;
  Result<std::shared_ptr<HostProcess>> AdoptAs(HostPid pid, std::string_view tag) override;
  Result<std::shared_ptr<HostProcess>> Recover(HostPid pid, uint64_t start_time) override;
  std::shared_ptr<HostProcess> FindSpawned(std::string_view tag) override;
  Status Bind(std::shared_ptr<HostProcess> process) override;
  void SetPid(HostPid pid) override;
  void Exited(ExitStatus status) override;
  Result<std::unique_ptr<Watch>> WatchReadable(int fd, std::function<void()> ready) override;
  Status Store(std::string_view name, const UniqueFd& fd) override;
  Status StoreAll(std::span<const NamedFd> all) override;
  Result<UniqueFd> Take(std::string_view name) override;
  void Drop(std::string_view name) override;
  Status Save(std::string blob) override;
  void Log(LogLevel level, std::string_view message) override;
  void Count(std::string_view name, uint64_t amount) override;

  std::chrono::milliseconds TimeLeft() const override { return CallDeadline::Left(); }

  /// Drops every descriptor that is still stored, and how the processes ended that had a tag.
  /// Thread: loop.
  void DropAll();

  /// The sandbox's object has gone: what its backend asks from now on is refused, and
  /// logged. Thread: any.
  void End() { ended_ = true; }

  /// Those that it had started, tagged or not, and that still run. Thread: loop.
  std::vector<ProcessId> Running() const;

 private:
  Result<std::string> StoredName(std::string_view name) const;
  bool IsRunning(const ProcessId& process) const;
  /// Errors: kNotFound after the end; `call` is what the backend does then.
  Status CheckLive(std::string_view call) const;
  async::Task<Status> StoreOnLoop(std::shared_ptr<std::vector<keeper_client::ToStore>> all);
  async::Task<Result<keeper_client::WatchedProcessPtr>> SpawnOnLoop(
      std::shared_ptr<SpawnRequest> request);

  Services services_;
  const ContextOptions options_;
  /// What is in the store, of this engine's doing. Loop only.
  const std::shared_ptr<std::set<std::string>> stored_ = std::make_shared<std::set<std::string>>();
  /// Loop only.
  std::vector<ProcessId> spawned_;
  std::atomic<bool> ended_ = false;
  /// Of its watches' calls; of a sandbox, that of all its calls.
  const async::AccountPtr account_;
};

}  // namespace gantry::backend
