// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include <gantry/deadline.h>

namespace gantry::vmm {

inline Deadline In(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

/// No test waits longer for what comes.
inline Deadline Soon() { return In(std::chrono::seconds(60)); }

}  // namespace gantry::vmm
