// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/cache/recent.h"

#include <memory>

#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/memfd.h>

namespace gantry::wasm {
namespace {

/// What each takes beside its bytes.
constexpr uint64_t kBeside = 1024;

std::shared_ptr<const Outcome> Of(uint64_t bytes, int64_t kept_until = EntryHeader::kForEver) {
  return std::make_shared<const Outcome>(
      Outcome{.failure = {}, .bytes = bytes, .kept_until = kept_until});
}

TEST(RecentOutcomesTest, AreTheLastOnesUpToALimit) {
  RecentOutcomes recent(3 * (kBeside + 10));
  for (const char* key : {"a", "b", "c"}) {
    recent.Add(key, Of(10), 0);
  }
  EXPECT_EQ(recent.bytes(), 3 * (kBeside + 10));
  EXPECT_TRUE(recent.Find("a", 0).outcome);
  recent.Add("d", Of(10), 0);
  EXPECT_FALSE(recent.Find("b", 0).outcome) << "it was used longest ago";
  for (const char* key : {"a", "c", "d"}) {
    EXPECT_TRUE(recent.Find(key, 0).outcome) << key;
  }
  EXPECT_EQ(recent.bytes(), 3 * (kBeside + 10));
}

TEST(RecentOutcomesTest, MakeNoRoomForWhatNeverFits) {
  RecentOutcomes recent(kBeside + 10);
  recent.Add("a", Of(10), 0);
  recent.Add("b", Of(11), 0);
  EXPECT_FALSE(recent.Find("b", 0).outcome);
  EXPECT_TRUE(recent.Find("a", 0).outcome);
}

TEST(RecentOutcomesTest, HaveNoMoreDescriptorsThanTheyHaveRoomFor) {
  RecentOutcomes recent(uint64_t{1} << 20);
  for (const char* key : {"a", "b", "c", "d", "e"}) {
    auto outcome = std::make_shared<Outcome>();
    outcome->file = SealedMemfd("artifact", "x", MemfdUse::kRead).value();
    recent.Add(key, std::move(outcome), 0);
  }
  EXPECT_FALSE(recent.Find("b", 0).outcome) << "of one byte each, and a descriptor";
  EXPECT_TRUE(recent.Find("e", 0).outcome);
}

TEST(RecentOutcomesTest, AreReplaced) {
  RecentOutcomes recent(10 * kBeside);
  recent.Add("a", Of(10), 0);
  recent.Add("a", Of(20), 0);
  EXPECT_EQ(recent.bytes(), kBeside + 20);
  EXPECT_EQ(recent.Find("a", 0).outcome->bytes, 20U);
}

TEST(RecentOutcomesTest, GoWhenTheirTimeIsOver) {
  RecentOutcomes recent(10 * kBeside);
  recent.Add("a", Of(10, 100), 0);
  EXPECT_TRUE(recent.Find("a", 100).outcome);
  EXPECT_FALSE(recent.Find("a", 101).outcome);
  EXPECT_EQ(recent.bytes(), 0U);
}

TEST(RecentOutcomesTest, SayOnceAnHourThatTheyAreUsed) {
  RecentOutcomes recent(10 * kBeside);
  recent.Add("a", Of(10), 1000);
  EXPECT_FALSE(recent.Find("a", 1000 + 3599).hourly);
  EXPECT_TRUE(recent.Find("a", 1000 + 3600).hourly);
  EXPECT_FALSE(recent.Find("a", 1000 + 7199).hourly);
}

}  // namespace
}  // namespace gantry::wasm
