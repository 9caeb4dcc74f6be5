// SPDX-License-Identifier: Apache-2.0
//
// How processes ended. Every child of the keeper that dies is collected here: those
// it spawned, and orphans that came to it as subreaper. The exit of a watched
// process is kept until the engine has acknowledged it.
//
// An orphan is watched only once the engine says so (Adopt), which may come after its death:
// see orphans.h.
//
// Whoever makes children that die can do so faster than they are collected, so a turn of the
// loop collects only some of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/toolkit/process/process_id.h>

#include "core/keeper/ended_names.h"
#include "core/keeper/orphans.h"
#include "core/keeper/state.h"
#include "core/link/messages.h"
#include "core/os/process.h"

namespace gantry::keeper {

/// Thread: the keeper's only one. Blocks: never.
class Exits {
 public:
  static constexpr size_t kMaxKept = 65536;
  /// So many are collected in one turn.
  static constexpr size_t kPerTurn = 256;

  /// A child that has been collected.
  struct Ended {
    os::ReapedProcess process;
    /// /proc/PID/cgroup of it; "" where that is not known.
    std::string cgroups;
  };

  /// The next one that has ended; none: there is none.
  using Source = std::function<std::optional<Ended>()>;

  /// `on_exit`: a watched process ended. `on_reaped`: any child did (before `on_exit`).
  Exits(std::function<void(const link::Exit&)> on_exit,
        std::function<void(const link::Exit&)> on_reaped, Source source = ReapChild)
      : on_exit_(std::move(on_exit)),
        on_reaped_(std::move(on_reaped)),
        source_(std::move(source)) {}

  /// The exit of this child matters. `name` (may be empty) is kept as long as its record.
  void Watch(ProcessId process, const std::string& name);

  /// As `Watch`, for a process that may have ended already. Start time 0: the
  /// newest of that pid that this process is or was above. `name`: as with `Watch`; "": it
  /// keeps the one that it has. Errors: kNotFound where it is gone and was not collected here.
  Result<ProcessId> Adopt(ProcessId process, const std::string& name = {});
  /// Forgets a record, or that the process is watched. What is left of one with a name is in
  /// `ended_names`.
  void Acknowledge(ProcessId process);
  /// A watched child did not reach its program, and was collected elsewhere: its record
  /// says 127, as a shell would.
  void RecordFailedSpawn(ProcessId process);
  /// Collects children that have ended, `kPerTurn` at most. True: there may be more.
  bool ReapSome();

  /// The record of a process, be it watched or not.
  std::optional<link::Exit> Find(ProcessId process) const;
  /// The kept records, oldest first.
  std::vector<link::Exit> Kept() const;

  /// Those whose exits are waited for.
  std::vector<link::ProcessRef> Watched() const;

  const std::map<ProcessId, std::string>& names() const { return names_; }

  const EndedNames& ended_names() const { return ended_names_; }

  /// How those ended whose names begin with `prefix` matters no more.
  void ForgetEnded(std::string_view prefix) { ended_names_.ForgetBelow(prefix); }

  state::Exits Save() const;
  /// Only into an empty one. Tells nobody: the engine was told.
  void Restore(const state::Exits& state);

  size_t watched() const { return watched_.size(); }

  size_t kept() const { return kept_.size(); }

 private:
  static std::optional<Ended> ReapChild();
  void Keep(const link::Exit& exit);
  void Name(ProcessId process, const std::string& name);
  Result<ProcessId> Take(ProcessId process);
  Result<ProcessId> NewestOf(pid_t pid) const;

  std::function<void(const link::Exit&)> on_exit_;
  std::function<void(const link::Exit&)> on_reaped_;
  Source source_;
  std::set<ProcessId> watched_;
  std::map<ProcessId, std::string> names_;
  EndedNames ended_names_;
  std::map<ProcessId, uint64_t> order_of_;
  std::map<uint64_t, link::Exit> kept_;
  uint64_t next_order_ = 1;
  Orphans orphans_;
};

}  // namespace gantry::keeper
