// SPDX-License-Identifier: Apache-2.0
#include "core/async/clock.h"

#include <algorithm>

namespace gantry::async {
namespace {

class Steady final : public Clock {
 public:
  TimePoint Now() const override { return std::chrono::steady_clock::now(); }

  std::optional<Duration> Until(TimePoint due) const override {
    return std::max(due - Now(), Duration::zero());
  }
};

}  // namespace

const Clock& SteadyClock() {
  // Never destroyed: threads of plugins run to the end of the process.
  static const auto* const clock = new Steady();
  return *clock;
}

}  // namespace gantry::async
