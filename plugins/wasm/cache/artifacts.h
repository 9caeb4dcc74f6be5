// SPDX-License-Identifier: Apache-2.0
//
// The compiled form of modules: made once for each module, compiler and processor, then kept in
// memory, so that the containers of one module share its pages, and on disk, so that a restart of
// the engine or of the node does not make it again. What cannot be compiled is remembered, too.
//
// Several callers with one module wait for one compile, also where a process more of the node works
// on the directory: another engine, or `gantryctl wasm compile`. A module that is on disk waits for
// no compile of another one, and of those that wait each tenant's share is the same
// (compile_queue.h).
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gantry/backend.h>
#include <gantry/context.h>
#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/toolkit/sync/mutex.h>
#include <gantry/unique_fd.h>

#include "plugins/wasm/cache/compile_queue.h"
#include "plugins/wasm/cache/compiler.h"
#include "plugins/wasm/cache/recent.h"
#include "plugins/wasm/cache/store.h"
#include "plugins/wasm/kind.h"
#include "plugins/wasm/module/bytes.h"

namespace gantry::wasm {

struct Artifact {
  /// A sealed file in memory, open for reading, for `SpawnRequest`; with a position of its own.
  UniqueFd file;
  Kind kind = Kind::kModule;
};

struct CacheOptions {
  /// Of root alone; made when it is needed. Lost with it is only time.
  std::string directory = "/var/lib/gantry/wasm";
  /// Bytes on disk and in memory.
  uint64_t max_disk = uint64_t{1} << 30;
  uint64_t max_memory = uint64_t{64} << 20;
  /// Compiles at a time.
  uint32_t compiles = 1;
  /// How long another process's compile of a module is waited for, before it is taken for stuck.
  std::chrono::milliseconds elsewhere = std::chrono::minutes(10);
  /// Modules that wait for one, and their bytes.
  uint32_t max_waiting = 32;
  uint64_t max_waiting_bytes = uint64_t{256} << 20;
  CompileLimits limits;
  /// What failed and is remembered for a while is tried again at once: the limits are others now.
  bool retry = false;
  /// Seconds since the epoch.
  std::function<int64_t()> now = [] {
    return std::chrono::duration_cast<std::chrono::seconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  };
};

/// Thread: any, several at a time.
class Artifacts {
 public:
  /// Owner: `context` is the caller's and outlives this; of a backend, that of
  /// `SandboxBackend::Attach`. Starts nothing.
  Artifacts(SandboxContext& context, Compiler::OpenProgram program, CacheOptions options);
  Artifacts(const Artifacts&) = delete;
  Artifacts& operator=(const Artifacts&) = delete;
  /// Nobody is in `Get`. Kills the compiles that run. Blocks: until they have ended.
  ~Artifacts();

  /// Finds or makes the artifact of `module`, for `asker`. A directory that cannot be used costs
  /// time, and no container its start.
  /// Errors: kInvalidArgument: the module is not valid, with the compiler's words;
  /// kDeadlineExceeded: `limit` is over, the compile goes on for who asks again;
  /// kResourceExhausted: the compiler took more than it may have, or too many wait for it;
  /// kInternal: it crashed; kUnavailable: it was killed, or cannot be started. What says something
  /// about the module is its answer to the next who asks: kInvalidArgument for as long as it is in
  /// the cache, kResourceExhausted and kInternal for ten minutes.
  /// Blocks: up to `limit`, and on the disk.
  Result<Artifact> Get(const ModuleBytes& module, const Asker& asker,
                       std::chrono::milliseconds limit);

  /// The engine ends: as of `SandboxBackend::Leave`, kills the compiles that run.
  void Leave() { compiler_.Stop(); }

  /// For `SandboxBackend::Counts`. Blocks: never.
  std::vector<BackendCount> Counts() const;

  /// What is on disk. Errors, blocks: as `ArtifactStore::List`.
  Result<std::vector<ArtifactStore::Listed>> List() const { return store_.List(); }

  /// As `ArtifactStore::IsToBeCleaned`, by the cache's own clock.
  Result<bool> IsToBeCleaned(std::chrono::seconds every) const {
    return store_.IsToBeCleaned(options_.now(), every.count());
  }

  /// Removes from disk what is of no module in `used` and has not been used since `before`,
  /// seconds since the epoch. Errors, blocks: as `ArtifactStore::Clean`.
  Result<ArtifactStore::Kept> Clean(const std::set<Sha256Digest>& used, int64_t before);

  /// The same of what has not been used for that long.
  Result<ArtifactStore::Kept> CleanUnused(const std::set<Sha256Digest>& used,
                                          std::chrono::seconds unused) {
    return Clean(used, options_.now() - unused.count());
  }

 private:
  /// A module that is looked for or compiled, and those who wait for it.
  struct Flight {
    EntryId id;
    ModuleBytes module;
    std::shared_ptr<const Outcome> outcome;
  };

  using FlightPtr = std::shared_ptr<Flight>;

  /// Whose turn a module's is. Another process compiles it: it is looked at again `at`.
  struct Work {
    FlightPtr flight;
    Asker asker;
    Deadline at{};
    /// Then it is compiled, whoever else does.
    Deadline latest{};
  };

  /// Of what becomes worse without an error for anybody: how often.
  struct Tally {
    uint64_t disk_hits = 0;
    uint64_t memory_hits = 0;
    uint64_t compiles = 0;
    uint64_t failures = 0;
    uint64_t damaged = 0;
    uint64_t unsaved = 0;
    uint64_t disk_bytes = 0;
  };

  Result<Sha256Digest> CompilerDigest(std::chrono::milliseconds limit);
  Result<FlightPtr> Join(const ModuleBytes& module, const EntryId& id, const Asker& asker,
                         bool& first) GANTRY_REQUIRES(mutex_);
  std::shared_ptr<const Outcome> LookOnDisk(const EntryId& id);
  void LandFromDisk(const FlightPtr& flight, const Asker& asker);
  Status Queue(const FlightPtr& flight, const Asker& asker) GANTRY_REQUIRES(mutex_);
  Result<std::shared_ptr<const Outcome>> Await(const FlightPtr& flight, Deadline deadline);
  void Land(const FlightPtr& flight, std::shared_ptr<const Outcome> outcome)
      GANTRY_REQUIRES(mutex_);
  void WorkAll();
  void Do(Work work);
  std::optional<Work> Next();
  std::optional<Work> TakeNext() GANTRY_REQUIRES(mutex_);
  void PutAside(Work work);
  std::shared_ptr<const Outcome> CompileOne(const Flight& flight);
  void KeepOnDisk(const Flight& flight, const Outcome& outcome);
  void Note(uint64_t Tally::* tally, std::string_view message);

  SandboxContext& context_;
  const CacheOptions options_;
  const ArtifactStore store_;
  Compiler compiler_;

  /// One asks the compiler what it is, and the others wait for the answer.
  Mutex describe_mutex_;
  std::optional<Sha256Digest> digest_ GANTRY_GUARDED_BY(describe_mutex_);

  mutable Mutex mutex_;
  std::condition_variable landed_;
  std::condition_variable queued_;
  bool stopped_ GANTRY_GUARDED_BY(mutex_) = false;
  Tally tally_ GANTRY_GUARDED_BY(mutex_);
  RecentOutcomes recent_ GANTRY_GUARDED_BY(mutex_);
  std::map<std::string, FlightPtr> flights_ GANTRY_GUARDED_BY(mutex_);
  CompileQueue queue_ GANTRY_GUARDED_BY(mutex_);
  /// Those that other processes compile, which are few, in the order in which they are looked at.
  std::deque<Work> aside_ GANTRY_GUARDED_BY(mutex_);
  uint32_t idle_ GANTRY_GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_ GANTRY_GUARDED_BY(mutex_);
};

}  // namespace gantry::wasm
