// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace gantry {

using Deadline = std::chrono::steady_clock::time_point;

/// What is left until `deadline`; never negative.
std::chrono::milliseconds Left(Deadline deadline);
/// The same as `poll` takes it, rounded up.
int PollTimeout(Deadline deadline);

}  // namespace gantry
