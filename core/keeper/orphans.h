// SPDX-License-Identifier: Apache-2.0
//
// How processes ended that nobody watched: a container's init can die while the OCI runtime
// that made it is still exiting, and the engine asks for its end only then. So the records of
// the last ones are kept, and where there are too many, those of the cgroup that has the most
// go first: a container that makes orphans in thousands does not flush the end of another one
// that has just been made.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include <gantry/toolkit/process/process_id.h>

#include "core/link/messages.h"

namespace gantry::keeper {

/// Small rather than fast: it is full on every node that has been up for a day, and is asked a
/// few times in a container's life. Thread: the keeper's only one. Blocks: never.
class Orphans {
 public:
  static constexpr size_t kMax = 1024;

  /// `cgroups`: its /proc/PID/cgroup, "" where that is not known.
  void Add(const link::Exit& exit, std::string_view cgroups);
  std::optional<link::Exit> Find(ProcessId process) const;
  /// As `Find`; it is kept here no longer.
  std::optional<link::Exit> Take(ProcessId process);
  /// The start time of the newest that had this pid; 0: none had.
  uint64_t NewestStart(pid_t pid) const;
  /// The oldest first.
  std::vector<link::Exit> All() const;

  size_t size() const { return ended_.size(); }

 private:
  struct Ended {
    link::Exit exit;
    /// A fingerprint of its cgroups: their text is ten times as long as the rest.
    uint64_t cgroups = 0;
  };

  std::deque<Ended>::const_iterator Position(ProcessId process) const;
  void Erase(const std::deque<Ended>::const_iterator& one);

  /// By age.
  std::deque<Ended> ended_;
  /// By the fingerprint of their cgroups, how many there are.
  std::map<uint64_t, size_t> of_;
};

}  // namespace gantry::keeper
