// SPDX-License-Identifier: Apache-2.0
//
// For the few things that the kernel has no event for: look, pause, look again. Where there is
// an event (a pidfd, cgroup.events, a readable descriptor), wait for that instead.
//
//   Backoff backoff({.no_event = "umount2: EBUSY has no end that one could wait for",
//                    .first = 1ms, .longest = 20ms});
//   while (!Try()) {
//     if (!backoff.Sleep(deadline)) return TooLate();
//   }
#pragma once

#include <chrono>

#include <gantry/deadline.h>

namespace gantry {

/// Pauses that double, from the first to the longest. Thread: one.
class Backoff {
 public:
  struct Terms {
    /// What the kernel does not tell of, and where: for who reads the caller.
    const char* no_event;
    std::chrono::nanoseconds first;
    std::chrono::nanoseconds longest;
  };

  constexpr explicit Backoff(const Terms& terms) : longest_(terms.longest), next_(terms.first) {}

  /// The pause before the next look. For a loop, which sleeps otherwise.
  std::chrono::nanoseconds Next();

  /// Sleeps for that pause, or for what is left where that is less. False, at once: the deadline
  /// has passed. A signal may end it early. Blocks: for the pause.
  bool Sleep(Deadline deadline);

 private:
  std::chrono::nanoseconds longest_;
  std::chrono::nanoseconds next_;
};

}  // namespace gantry
