// SPDX-License-Identifier: Apache-2.0
//
// A compiler's time, shared: no compiler and no clock here, each compile takes what is said.
#include "plugins/wasm/cache/compile_queue.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>

namespace gantry::wasm {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Asker PodOf(const std::string& tenant, const std::string& pod = "pod") {
  return {.tenant = tenant, .sandbox = pod};
}

class CompileQueueTest : public testing::Test {
 protected:
  /// `count` modules called NAME0, NAME1 and so on.
  void Add(const Asker& asker, const std::string& name, int count) {
    for (int i = 0; i < count; ++i) {
      const auto lost = queue_.Add(Format("{}{}", name, i), 1, asker);
      ASSERT_TRUE(lost) << lost.error().message;
      ASSERT_THAT(*lost, IsEmpty());
    }
  }

  /// Compiles `count` modules, each of which takes what it takes for whose it is.
  std::vector<std::string> Compile(int count, const std::vector<std::pair<Asker, seconds>>& takes) {
    std::vector<std::string> keys;
    for (int i = 0; i < count; ++i) {
      const auto job = queue_.Next();
      if (!job) {
        keys.emplace_back("none");
        continue;
      }
      keys.push_back(job->key);
      for (const auto& [asker, time] : takes) {
        if (asker == job->asker) {
          queue_.Charge(asker, time);
        }
      }
    }
    return keys;
  }

  CompileQueue queue_{{.modules = 32, .bytes = 1000}};
  const Asker a_ = PodOf("a");
  const Asker b_ = PodOf("b");
};

TEST_F(CompileQueueTest, OfOneAreAsTheyCame) {
  Add(a_, "a", 3);
  EXPECT_THAT(Compile(4, {{a_, seconds(1)}}), ElementsAre("a0", "a1", "a2", "none"));
}

/// As many at a time as one compiler takes: what waits behind a tenant's backlog is one of his.
TEST_F(CompileQueueTest, DoNotPassASmallTenantOver) {
  Add(a_, "a", 20);
  EXPECT_THAT(Compile(1, {{a_, seconds(300)}}), ElementsAre("a0"));
  Add(b_, "b", 4);
  EXPECT_THAT(Compile(5, {{a_, seconds(300)}, {b_, seconds(1)}}),
              ElementsAre("b0", "b1", "b2", "b3", "a1"));
}

TEST_F(CompileQueueTest, ShareTheTimeAndNotTheModules) {
  Add(a_, "a", 4);
  Add(b_, "b", 8);
  EXPECT_THAT(Compile(9, {{a_, seconds(3)}, {b_, seconds(1)}}),
              ElementsAre("a0", "b0", "b1", "b2", "a1", "b3", "b4", "b5", "a2"));
}

/// Who asks again as soon as his last one is done has a backlog, too.
TEST_F(CompileQueueTest, RememberWhoHasJustUsedMuch) {
  Add(a_, "a", 1);
  EXPECT_THAT(Compile(1, {{a_, seconds(10)}}), ElementsAre("a0"));
  Add(b_, "b", 3);
  ASSERT_TRUE(queue_.Add("again", 1, a_));
  EXPECT_THAT(Compile(4, {{a_, seconds(10)}, {b_, seconds(4)}}),
              ElementsAre("b0", "b1", "b2", "again"));
}

/// He cannot save time up, and have the compiler for himself later.
TEST_F(CompileQueueTest, OweNothingToWhoDidNotAsk) {
  Add(a_, "a", 10);
  Compile(5, {{a_, seconds(100)}});
  Add(b_, "b", 5);
  EXPECT_THAT(Compile(4, {{a_, seconds(100)}, {b_, seconds(100)}}),
              ElementsAre("b0", "a5", "b1", "a6"));
}

TEST_F(CompileQueueTest, AreSharedAmongThePodsOfATenant) {
  const Asker greedy = PodOf("a", "greedy");
  const Asker modest = PodOf("a", "modest");
  Add(greedy, "g", 10);
  EXPECT_THAT(Compile(1, {{greedy, seconds(300)}}), ElementsAre("g0"));
  Add(modest, "m", 2);
  Add(b_, "b", 1);
  EXPECT_THAT(Compile(4, {{greedy, seconds(300)}, {modest, seconds(300)}, {b_, seconds(1)}}),
              ElementsAre("b0", "m0", "g1", "m1"))
      << "pods of one tenant have one tenant's share";
}

/// A hundred pods are not a hundred shares.
TEST_F(CompileQueueTest, AreNotMoreForMorePods) {
  std::vector<std::pair<Asker, seconds>> takes = {{b_, seconds(10)}};
  for (int i = 0; i < 10; ++i) {
    takes.emplace_back(PodOf("a", std::to_string(i)), seconds(10));
    Add(takes.back().first, Format("a{}-", i), 1);
  }
  Add(b_, "b", 3);
  EXPECT_THAT(Compile(6, takes), ElementsAre("a0-0", "b0", "a1-0", "b1", "a2-0", "b2"));
}

/// One that waits in a tenant's backlog does not wait there for others.
TEST_F(CompileQueueTest, ComeForEachWhoWaitsForAModule) {
  Add(a_, "a", 9);
  Compile(1, {{a_, seconds(5)}});
  queue_.Join("a7", b_);
  queue_.Join("a7", b_);
  queue_.Join("nobody's", b_);
  const auto job = queue_.Next();
  ASSERT_TRUE(job);
  EXPECT_EQ(job->key, "a7");
  EXPECT_EQ(job->asker, b_) << "it is his time";
  EXPECT_THAT(Compile(1, {}), ElementsAre("a1"));
}

TEST_F(CompileQueueTest, HaveRoomForSoManyModules) {
  Add(a_, "a", 32);
  const auto more = queue_.Add("a32", 1, a_);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, Code::kResourceExhausted);
  EXPECT_THAT(more.error().message, HasSubstr("32 others wait"));
  EXPECT_EQ(queue_.size(), 32U);
}

/// Who fills the room does not keep others out of it.
TEST_F(CompileQueueTest, GiveWayToWhoHasLess) {
  Add(a_, "a", 32);
  for (int i = 0; i < 16; ++i) {
    const auto lost = queue_.Add(Format("b{}", i), 1, b_);
    ASSERT_TRUE(lost) << lost.error().message;
    EXPECT_THAT(*lost, ElementsAre(Format("a{}", 31 - i)));
  }
  EXPECT_FALSE(queue_.Add("b16", 1, b_)) << "each has half of it";
  EXPECT_THAT(*queue_.Add("c", 1, PodOf("c")), ElementsAre("a15"));
}

TEST_F(CompileQueueTest, GiveWayToAnotherPodOfTheTenant) {
  Add(PodOf("a", "greedy"), "g", 32);
  EXPECT_THAT(*queue_.Add("m", 1, PodOf("a", "modest")), ElementsAre("g31"));
}

TEST_F(CompileQueueTest, DoNotTakeAwayWhatOthersWaitFor) {
  Add(a_, "a", 32);
  queue_.Join("a31", PodOf("c"));
  EXPECT_THAT(*queue_.Add("b", 1, b_), ElementsAre("a30"));
}

TEST_F(CompileQueueTest, HaveRoomForSoManyBytes) {
  for (const char* key : {"a0", "a1", "a2", "a3"}) {
    ASSERT_TRUE(queue_.Add(key, 250, a_));
  }
  EXPECT_FALSE(queue_.Add("a4", 1, a_));
  EXPECT_THAT(*queue_.Add("b0", 300, b_), ElementsAre("a3", "a2"));
  EXPECT_FALSE(queue_.Add("b1", 300, b_));
  EXPECT_FALSE(queue_.Add("c", 1001, PodOf("c"))) << "it never fits";
  EXPECT_EQ(queue_.size(), 3U) << "and nobody gave way for it";
}

TEST(AccountsTest, RememberThoseWhoHaveUsedMost) {
  Accounts accounts;
  accounts.Charge("much", 1'000'000);
  for (int i = 0; i < 1000; ++i) {
    accounts.Charge(std::to_string(i), 1 + static_cast<uint64_t>(i));
  }
  EXPECT_EQ(accounts.size(), Accounts::kMost);
  EXPECT_EQ(accounts.Of("much"), 1'000'000U);
  EXPECT_TRUE(accounts.IsEven("0"));
}

TEST(AccountsTest, ForgetWhatIsPaid) {
  Accounts accounts;
  accounts.Charge("a", 5);
  accounts.Charge("b", 9);
  accounts.Serve("b");
  EXPECT_TRUE(accounts.IsEven("a"));
  accounts.Charge("b", 1);
  EXPECT_EQ(accounts.size(), 1U);
  EXPECT_EQ(accounts.Of("b"), 10U);
}

}  // namespace
}  // namespace gantry::wasm
