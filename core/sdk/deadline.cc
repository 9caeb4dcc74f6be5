// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>

#include <gantry/deadline.h>

namespace gantry {

std::chrono::milliseconds Left(Deadline deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return std::max(left, std::chrono::milliseconds(0));
}

int PollTimeout(Deadline deadline) {
  constexpr int64_t kLongest = 1'000'000'000;
  return static_cast<int>(std::min<int64_t>(Left(deadline).count(), kLongest));
}

}  // namespace gantry
