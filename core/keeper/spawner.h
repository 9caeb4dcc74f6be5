// SPDX-License-Identifier: Apache-2.0
//
// Starting processes for the engine, without waiting for them: a child in a frozen
// cgroup or on a slow disk does not reach its program for a while.
//
// A child is watched (Exits) from its birth on, so that a new engine hears of it even
// when it was still on its way when the old one died. Its Spawned always comes before its Exit.
//
// A child with new namespaces is born a while after its Spawn came (see `os::BeginSpawn`).
// Where another engine has had its snapshot by then, nobody would hear of it, so it is given
// up. The process that makes it is nobody's business: it ends as an unnamed orphan.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/process/process_id.h>
#include <gantry/unique_fd.h>

#include "core/async/loop.h"
#include "core/keeper/exits.h"
#include "core/keeper/supervisor.h"
#include "core/link/messages.h"
#include "core/os/spawn.h"

namespace gantry::keeper {

/// Thread: the keeper's only one. Blocks: never.
class Spawner {
 public:
  static constexpr size_t kMaxPending = 1024;
  static constexpr std::chrono::seconds kDeadline{10};

  /// Called once for each `Begin`, at its earliest before that returns. `generation` is
  /// what `Begin` got. True: the engine that asked heard it.
  using Answer = std::function<bool(uint64_t generation, const link::Spawned&, UniqueFd pidfd)>;

  /// The generation of the engine that has the latest snapshot.
  using Generation = std::function<uint64_t()>;

  /// The limits of the group at an address; empty: none are known.
  using LimitsOf = std::function<std::vector<link::Rlimit>(const std::string& address)>;

  Spawner(async::Loop& loop, Exits& exits, ChildDefaults defaults, LimitsOf limits_of,
          Generation generation, Answer answer)
      : loop_(loop),
        exits_(exits),
        defaults_(defaults),
        limits_of_(std::move(limits_of)),
        generation_(std::move(generation)),
        answer_(std::move(answer)) {}

  ~Spawner();
  Spawner(const Spawner&) = delete;
  Spawner& operator=(const Spawner&) = delete;

  /// `fds` are borrowed for the time of the call.
  void Begin(uint64_t generation, const link::Spawn& request, const std::vector<UniqueFd>& fds);

  /// Starts a command that no engine has asked for, in a session of its own, with the limits of
  /// the group at `address`. Its end is nobody's business but the caller's.
  Result<os::PendingSpawn> Run(const link::Command& command, const std::string& address) const;

  /// None is on its way.
  bool idle() const { return pending_.empty(); }

  /// A child has ended: if it is one on its way, its answer is given now.
  void OnReaped(ProcessId process);

 private:
  struct Pending {
    os::PendingSpawn spawn;
    std::string name;
    uint64_t tag = 0;
    uint64_t generation = 0;
    /// Its time was up.
    bool late = false;
    async::WatchId watch{};
    async::TimerId timer{};
  };

  Result<os::PendingSpawn> Start(const link::Spawn& request, const std::vector<UniqueFd>& fds);
  void Finish(ProcessId key);
  bool MayLive(const Pending& pending);
  bool AnswerError(uint64_t generation, uint64_t tag, const Error& error);

  async::Loop& loop_;
  Exits& exits_;
  ChildDefaults defaults_;
  LimitsOf limits_of_;
  Generation generation_;
  Answer answer_;
  /// By what `os::BeginSpawn` gave; one that makes another process stays its key.
  std::map<ProcessId, Pending> pending_;
};

}  // namespace gantry::keeper
