// SPDX-License-Identifier: Apache-2.0
#include "gantry/toolkit/process/backoff.h"

#include <poll.h>

#include <algorithm>
#include <ctime>

namespace gantry {

std::chrono::nanoseconds Backoff::Next() {
  const std::chrono::nanoseconds pause = std::min(next_, longest_);
  next_ = std::min(2 * pause, longest_);
  return pause;
}

bool Backoff::Sleep(Deadline deadline) {
  const auto now = Deadline::clock::now();
  if (now >= deadline) {
    return false;
  }
  const std::chrono::nanoseconds pause = std::min<std::chrono::nanoseconds>(Next(), deadline - now);
  const auto seconds = std::chrono::floor<std::chrono::seconds>(pause);
  const timespec wait{.tv_sec = seconds.count(), .tv_nsec = (pause - seconds).count()};
  ppoll(nullptr, 0, &wait, nullptr);
  return true;
}

}  // namespace gantry
