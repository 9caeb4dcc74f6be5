// SPDX-License-Identifier: Apache-2.0
#include "core/keeper/orphans.h"

#include <algorithm>

#include <gantry/fingerprint.h>

namespace gantry::keeper {

void Orphans::Add(const link::Exit& exit, std::string_view cgroups) {
  const uint64_t of = Fingerprint(cgroups);
  ended_.push_back({exit, of});
  ++of_[of];
  if (ended_.size() <= kMax) {
    return;
  }
  const auto most = std::ranges::max_element(of_, {}, [](const auto& item) { return item.second; });
  // Of several cgroups that have as many, the one whose oldest is the oldest.
  Erase(std::ranges::find_if(
      ended_, [&](const Ended& one) { return of_.at(one.cgroups) == most->second; }));
}

std::deque<Orphans::Ended>::const_iterator Orphans::Position(ProcessId process) const {
  return std::ranges::find_if(ended_, [&](const Ended& one) {
    return one.exit.pid == process.pid && one.exit.start_time == process.start_time;
  });
}

void Orphans::Erase(const std::deque<Ended>::const_iterator& one) {
  const auto of = of_.find(one->cgroups);
  if (--of->second == 0) {
    of_.erase(of);
  }
  ended_.erase(one);
}

std::optional<link::Exit> Orphans::Find(ProcessId process) const {
  const auto found = Position(process);
  return found == ended_.end() ? std::nullopt : std::optional(found->exit);
}

std::optional<link::Exit> Orphans::Take(ProcessId process) {
  const auto found = Position(process);
  if (found == ended_.end()) {
    return std::nullopt;
  }
  const link::Exit exit = found->exit;
  Erase(found);
  return exit;
}

uint64_t Orphans::NewestStart(pid_t pid) const {
  uint64_t newest = 0;
  for (const Ended& one : ended_) {
    if (one.exit.pid == pid) {
      newest = std::max(newest, one.exit.start_time);
    }
  }
  return newest;
}

std::vector<link::Exit> Orphans::All() const {
  std::vector<link::Exit> all;
  all.reserve(ended_.size());
  for (const Ended& one : ended_) {
    all.push_back(one.exit);
  }
  return all;
}

}  // namespace gantry::keeper
