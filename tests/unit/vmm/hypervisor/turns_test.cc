// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/hypervisor/turns.h"

#include <chrono>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "tests/unit/vmm/hypervisor/rigs.h"

namespace gantry::vmm {
namespace {

TEST(Turns, AreTakenOneAfterTheOther) {
  Turns turns;
  {
    EXPECT_TRUE(turns.Take("one", AtOnce()));
  }
  EXPECT_TRUE(turns.Take("two", AtOnce()));
}

TEST(Turns, WhoWaitsGivesUp) {
  Turns turns;
  const auto held = turns.Take("one", Soon());
  const auto late = turns.Take("two", AtOnce());
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kDeadlineExceeded);
}

TEST(Turns, WhoWaitsIsNext) {
  Turns turns;
  std::optional held = turns.Take("one", Soon());
  bool got = false;
  std::thread other([&] { got = turns.Take("two", Soon()).has_value(); });
  held.reset();
  other.join();
  EXPECT_TRUE(got);
}

}  // namespace
}  // namespace gantry::vmm
