// SPDX-License-Identifier: Apache-2.0
//
// Ends engines, and changes programs, while others live.
#pragma once

#include <atomic>
#include <random>
#include <string>
#include <thread>

#include "tests/harness/node.h"

namespace gantry::fault {

/// After so many steps of those that live, as chance has it: mostly kill -9 of the engine,
/// at times an upgrade of the engine, or of the keeper.
class Disturber {
 public:
  /// Begins at once, in a thread of its own.
  Disturber(const e2e::Node& node, unsigned seed);
  Disturber(const Disturber&) = delete;
  Disturber& operator=(const Disturber&) = delete;

  ~Disturber() { Stop(); }

  /// A step was made. Thread: any.
  void Step();

  /// Returns when it has stopped. Again: nothing.
  void Stop();

  int kills() const { return kills_; }

  int upgrades() const { return upgrades_; }

  int keeper_upgrades() const { return keeper_upgrades_; }

 private:
  void Run();
  void Disturb();
  void KillEngine();
  bool Upgrade(const std::vector<std::string>& words) const;

  const e2e::Node& node_;
  std::mt19937 random_;
  std::atomic<uint32_t> steps_ = 0;
  std::atomic<bool> stopped_ = false;
  int kills_ = 0;
  int upgrades_ = 0;
  int keeper_upgrades_ = 0;
  std::thread thread_;
};

}  // namespace gantry::fault
