// SPDX-License-Identifier: Apache-2.0
#include "gantry/toolkit/process/backoff.h"

#include <gtest/gtest.h>

namespace gantry {
namespace {

using namespace std::chrono_literals;

constexpr Backoff::Terms kTerms{.no_event = "a test", .first = 1ms, .longest = 5ms};

TEST(Backoff, DoublesUpToTheLongest) {
  Backoff backoff(kTerms);
  for (const auto pause : {1ms, 2ms, 4ms, 5ms, 5ms}) {
    EXPECT_EQ(backoff.Next(), pause);
  }
}

TEST(Backoff, IsNeverLongerThanTheLongest) {
  Backoff backoff({.no_event = "a test", .first = 10ms, .longest = 5ms});
  EXPECT_EQ(backoff.Next(), 5ms);
}

TEST(Backoff, SleepsUntilTheDeadlineAndNotBeyond) {
  Backoff backoff({.no_event = "a test", .first = 1h, .longest = 1h});
  const Deadline deadline = Deadline::clock::now() + 1ms;
  // It would take an hour.
  while (backoff.Sleep(deadline)) {
  }
  EXPECT_GE(Deadline::clock::now(), deadline);
}

TEST(Backoff, DoesNotSleepBehindItsDeadline) {
  Backoff backoff({.no_event = "a test", .first = 1h, .longest = 1h});
  EXPECT_FALSE(backoff.Sleep(Deadline::clock::now()));
}

TEST(Backoff, SleepsWithoutADeadline) {
  Backoff backoff(kTerms);
  EXPECT_TRUE(backoff.Sleep(Deadline::max()));
}

}  // namespace
}  // namespace gantry
