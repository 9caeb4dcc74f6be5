// SPDX-License-Identifier: Apache-2.0
//
// What is done from outside while an operation stands at a point.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/fault/harness/faults.h"
#include "tests/harness/node.h"

namespace gantry::fault {

/// Arms the fault and, where it has to, waits in a thread of its own for the engine to
/// stand there, does what is to be done, and lets it go on. Fails the test where a change
/// of programs does not end as it should. Thread: the test's.
class Disturbance {
 public:
  /// Writes the programs that are no engines.
  Disturbance(const e2e::Node& node, const Fault& fault);
  Disturbance(const Disturbance&) = delete;
  Disturbance& operator=(const Disturbance&) = delete;

  ~Disturbance() { End(); }

  /// The operation is over. Whether it happened. Again: the same.
  bool End();

 private:
  void Run(const std::stop_token& stop);
  void UpgradeEngine();
  void UpgradeToSilent(const std::stop_token& stop);
  void UpgradeRefused();
  void ExpectGivenUp(const std::string& program, const std::string& why) const;
  std::vector<std::string> UpgradeWords(const std::vector<std::string>& words) const;
  e2e::Output Upgrade(const std::vector<std::string>& words) const;
  std::string Script(const std::string& name, const std::string& text) const;

  const e2e::Node& node_;
  const Fault fault_;
  bool happened_ = false;
  std::jthread thread_;
};

}  // namespace gantry::fault
