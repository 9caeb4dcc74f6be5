// SPDX-License-Identifier: Apache-2.0
//
// A container that works while others suffer: it counts, and nobody may notice anything.
#pragma once

#include <string>

#include "tests/harness/node.h"
#include "tests/harness/program.h"

namespace gantry::fault {

/// Thread: the test's.
class Witness {
 public:
  /// Starts it, attached to a client.
  Witness(const e2e::Node& node, const e2e::Settings& settings, std::string id);

  /// Ends it; fails the test where a number was lost, or its exit code.
  void Testify();

  const std::string& id() const { return id_; }

 private:
  const e2e::Node& node_;
  std::string id_;
  e2e::Program program_;
};

}  // namespace gantry::fault
