// SPDX-License-Identifier: Apache-2.0
//
// The name of a process that stays right when its number is used again.
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>

namespace gantry {

/// One process for all time: a number is reused, the pair is not.
struct ProcessId {
  pid_t pid = 0;
  /// Clock ticks since boot; 0: unknown. Source: proc(5), /proc/PID/stat, field 22.
  uint64_t start_time = 0;

  auto operator<=>(const ProcessId&) const = default;
};

}  // namespace gantry
