// SPDX-License-Identifier: Apache-2.0
#include "core/task/recovery_order.h"

#include <gmock/gmock.h>

namespace gantry::task {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> TakeAll(RecoveryOrder& order) {
  std::vector<std::string> all;
  for (auto next = order.Next(2); !next.empty(); next = order.Next(2)) {
    EXPECT_LE(next.size(), 2U);
    all.insert(all.end(), next.begin(), next.end());
  }
  return all;
}

TEST(RecoveryOrder, IsThatOfTheKeeper) {
  RecoveryOrder order;
  for (const char* address : {"a", "b", "a", "c"}) {
    order.Add(address);
  }
  EXPECT_THAT(TakeAll(order), ElementsAre("a", "b", "c"));
  EXPECT_THAT(order.Next(1), IsEmpty());
}

TEST(RecoveryOrder, PutsThoseFirstThatSomebodyWaitsFor) {
  RecoveryOrder order;
  for (const char* address : {"a", "b", "c", "d"}) {
    order.Add(address);
  }
  order.Hurry("c");
  order.Hurry("d");
  order.Hurry("none");
  EXPECT_THAT(TakeAll(order), ElementsAre("d", "c", "a", "b"));
  order.Hurry("a");
  EXPECT_THAT(order.Next(1), IsEmpty()) << "it has had its turn";
}

TEST(RecoveryOrder, KeepsWaitingWhoAsksForWhatIsExpected) {
  RecoveryOrder order;
  EXPECT_TRUE(order.Expect("a"));
  EXPECT_FALSE(order.Expect("a")) << "it is expected already";
  const async::OneShot<void> done = order.DoneOf("a");
  EXPECT_FALSE(done.is_set());
  EXPECT_TRUE(order.DoneOf("b").is_set()) << "nobody expects it";
  order.SetDone("b");
  EXPECT_FALSE(done.is_set());
  order.SetDone("a");
  EXPECT_TRUE(done.is_set());
  EXPECT_TRUE(order.DoneOf("a").is_set());
}

}  // namespace
}  // namespace gantry::task
