// SPDX-License-Identifier: Apache-2.0
//
// The fixture of lives of ctr's containers: the steps that they have in common.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/fault/harness/fault_test.h"

namespace gantry::fault {

class CtrFaultTest : public FaultTest {
 protected:
  static Status ToStatus(const e2e::Output& output, int expected = 0);
  static std::function<void()> IsIn(const std::string& id, const std::string& state);
  static void Forget(const std::string& id);

  /// `ctr run -d` with `flags`.
  static Step CreateAndStart(const std::string& id, const e2e::Words& command,
                             const e2e::Words& flags = {});
  /// An exec that ends with `expected`.
  static Step ExecToDelete(const std::string& id, const e2e::Words& command,
                           const e2e::Output& expected);
  /// By SIGTERM.
  static Step KillAndTheEnd(const std::string& id, const std::string& signal = "TERM");
  /// Of one that ended with `code`.
  static Step DeleteAfter(const std::string& id, int code);

  /// Of a container, from its Create to its Delete.
  Life LifeOf(const std::string& id, std::vector<Step> steps);

 private:
  void End(const std::string& id, bool undisturbed);
};

}  // namespace gantry::fault
