// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/prober.h"

#include <algorithm>
#include <utility>

#include "tests/performance/samples.h"

namespace gantry::bench {

Prober::Prober(std::chrono::microseconds pace, std::function<Status()> once)
    : thread_([this, pace, call = std::move(once)] { Main(pace, call); }) {}

Prober::~Prober() { End(); }

void Prober::Main(std::chrono::microseconds pace, const std::function<Status()>& once) {
  while (!stop_ && failed_) {
    const auto begin = Clock::now();
    failed_ = once();
    longest_ = std::max(longest_, MillisecondsSince(begin));
    std::this_thread::sleep_until(begin + pace);
  }
}

void Prober::End() {
  stop_ = true;
  if (thread_.joinable()) {
    thread_.join();
  }
}

Result<double> Prober::Stop() {
  End();
  GANTRY_CHECK_OK(failed_);
  return longest_;
}

}  // namespace gantry::bench
