// SPDX-License-Identifier: Apache-2.0
#include "core/task/recovery_order.h"

#include <gmock/gmock.h>

namespace gantry::task {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> TakeAll(RecoveryOrder& order) {
  std::vector<std::string> all;
  while (auto next = order.Next()) {
    all.push_back(*next);
  }
  return all;
}

TEST(RecoveryOrder, IsThatOfTheKeeper) {
  RecoveryOrder order;
  for (const char* address : {"a", "b", "a", "c"}) {
    order.Add(address);
  }
  EXPECT_THAT(TakeAll(order), ElementsAre("a", "b", "c"));
  EXPECT_EQ(order.Next(), std::nullopt);
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
  EXPECT_EQ(order.Next(), std::nullopt) << "it has had its turn";
}

}  // namespace
}  // namespace gantry::task
