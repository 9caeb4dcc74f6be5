// SPDX-License-Identifier: Apache-2.0
//
// The fixture: lives of containers and pods, and what goes wrong in each of their steps.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/fault/harness/fault_list.h"
#include "tests/fault/harness/faults.h"
#include "tests/fault/harness/life.h"
#include "tests/fault/harness/witness.h"
#include "tests/harness/cri_test.h"
#include "tests/harness/events.h"

namespace gantry::fault {

class FaultTest : public e2e::CriTest {
 protected:
  void SetUp() override;
  void TearDown() override;

  /// Makes a life of its own: `suffix` is for the names in it.
  using MakeLife = std::function<Life(const std::string& suffix)>;

  /// What a sweep does at each point.
  enum class Of {
    kFailures,  ///< The engine is killed, or a call fails.
    kUpgrades,  ///< Engine and keeper are changed, or the change is given up.
  };

  /// Lives such lives: once to see which points each step passes; then, until each has had
  /// its turn, with something that goes wrong at one point of each step.
  void Sweep(const std::string& name, const MakeLife& make, Of of = Of::kFailures);

  e2e::Events& events() { return *events_; }

  /// Waits until an engine answers for all there is.
  static void WaitForEngine();

  /// Kills the engine, and begins `armed` when it can do nothing any more.
  static void KillEngine(const std::function<void()>& armed = [] {});

  /// The log's and the report's line of a fault.
  static void Note(const std::string& operation, const Fault& fault, bool happened);

 private:
  std::vector<FaultList> FindPoints(const MakeLife& make, Of of);
  void LiveWith(const std::string& name, const Life& life, std::vector<FaultList>& runs);
  void RunStep(const std::string& operation, const Step& step, FaultList& list, bool& undisturbed);
  void ExpectNothingLeft();

  std::unique_ptr<Witness> witness_;
  /// Of the witness.
  std::set<std::string> known_;
  std::unique_ptr<e2e::Events> events_;
  int lives_ = 0;
};

}  // namespace gantry::fault
