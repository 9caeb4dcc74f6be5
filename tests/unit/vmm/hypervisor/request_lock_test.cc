// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/hypervisor/request_lock.h"

#include <chrono>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "tests/unit/vmm/hypervisor/rigs.h"

namespace gantry::vmm {
namespace {

TEST(RequestLock, AreTakenOneAfterTheOther) {
  RequestLock lock;
  {
    EXPECT_TRUE(lock.Take("one", AtOnce()));
  }
  EXPECT_TRUE(lock.Take("two", AtOnce()));
}

TEST(RequestLock, WhoWaitsGivesUp) {
  RequestLock lock;
  const auto held = lock.Take("one", Soon());
  const auto late = lock.Take("two", AtOnce());
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kDeadlineExceeded);
}

TEST(RequestLock, WhoWaitsIsNext) {
  RequestLock lock;
  std::optional held = lock.Take("one", Soon());
  bool got = false;
  std::thread other([&] { got = lock.Take("two", Soon()).has_value(); });
  held.reset();
  other.join();
  EXPECT_TRUE(got);
}

}  // namespace
}  // namespace gantry::vmm
