// SPDX-License-Identifier: Apache-2.0
//
// Calls that came again after a restart of the engine: whether all have come, and which Starts are
// among them and wait for the recovery.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "core/async/co.h"
#include "core/task/instances.h"

namespace gantry::task {

struct TaskProcess;

/// Thread: loop.
class ReplayedStarts {
 public:
  using Key = std::pair<InstanceKey, std::string>;

  /// Says, as long as it lives, that a Start has come again: before anything waits.
  class Mark {
   public:
    Mark(ReplayedStarts& all, Key key) : all_(all), here_(all.running_.insert(std::move(key))) {}

    Mark(const Mark&) = delete;
    Mark& operator=(const Mark&) = delete;

    ~Mark() { all_.running_.erase(here_); }

   private:
    ReplayedStarts& all_;
    std::multiset<Key>::iterator here_;
  };

  /// A Start of it is replayed and waits for the recovery.
  bool Contains(const TaskProcess& process) const;

  /// Set when every request that is replayed has come.
  async::OneShot<void>& all_came() { return all_came_; }

 private:
  /// By container and exec id.
  std::multiset<Key> running_;
  async::OneShot<void> all_came_;
};

}  // namespace gantry::task
