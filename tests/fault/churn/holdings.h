// SPDX-License-Identifier: Apache-2.0
//
// What keeper and engine hold when nothing is left to do.
#pragma once

#include <cstdint>
#include <string>

#include "tests/harness/node.h"

namespace gantry::fault {

struct Holdings {
  int keeper_descriptors = 0;
  int engine_descriptors = 0;
  /// Memory that is the keeper's alone: what it has written to (of its PSS, all but the
  /// program's own pages), and its files in memory.
  int64_t keeper_kib = 0;
  int64_t keeper_files_kib = 0;

  std::string Text() const;
};

/// Waits until the keeper has given back what it does not need.
Holdings ReadHoldings(const e2e::Node& node);

}  // namespace gantry::fault
