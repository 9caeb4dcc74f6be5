// SPDX-License-Identifier: Apache-2.0
#include "core/async/account.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/async/worker_pool.h"
#include "tests/unit/async/loop_driver.h"

namespace gantry::async {
namespace {

using std::chrono::seconds;
using test::RunUntil;
using Outcome = std::optional<Result<int>>;

/// Works until its thread's clock has moved: it ticks finer than this takes.
void Burn() {
  std::atomic<uint64_t> sum = 0;
  for (int i = 0; i < 200'000; ++i) {
    sum.fetch_add(static_cast<uint64_t>(i), std::memory_order_relaxed);
  }
}

AccountPtr Make(const char* name) { return std::make_shared<Account>(name); }

TEST(Charged, AddsUpForWhomTheThreadWorks) {
  const AccountPtr outer = Make("outer");
  const AccountPtr inner = Make("inner");
  EXPECT_EQ(Charged::Current(), nullptr);
  {
    const Charged working(outer);
    Burn();
    {
      const Charged other(inner);
      EXPECT_EQ(Charged::Current(), inner);
      EXPECT_GT(outer->cpu_ns, 0U);
      Burn();
    }
    const uint64_t before = inner->cpu_ns;
    EXPECT_GT(before, 0U);
    EXPECT_EQ(Charged::Current(), outer);
    Burn();
    EXPECT_EQ(inner->cpu_ns, before);
  }
  EXPECT_EQ(Charged::Current(), nullptr);
  const uint64_t total = outer->cpu_ns;
  Burn();
  EXPECT_EQ(outer->cpu_ns, total);
}

TEST(HeldBytes, CountAsLongAsTheyAreHeld) {
  const AccountPtr account = Make("a");
  HeldBytes held(account, 10);
  EXPECT_EQ(account->bytes, 10U);
  HeldBytes moved = std::move(held);
  EXPECT_EQ(account->bytes, 10U);
  moved = HeldBytes(account, 3);
  EXPECT_EQ(account->bytes, 3U);
  moved = HeldBytes();
  EXPECT_EQ(account->bytes, 0U);
}

/// A pool whose calls block until the gate is opened.
class SharedPoolTest : public testing::Test {
 protected:
  ~SharedPoolTest() override { Open(); }

  static Task<void> RunInto(WorkerPool& pool, AccountPtr account, std::function<Result<int>()> call,
                            Refusable refusable, Outcome& out) {
    out = co_await pool.RunFor(std::move(account), std::move(call), refusable);
  }

  Outcome& Block(WorkerPool& pool, const AccountPtr& account,
                 Refusable refusable = Refusable::kYes) {
    Outcome& outcome = outcomes_.emplace_back();
    const auto call = [opened = opened_]() -> Result<int> {
      opened.wait();
      return 1;
    };
    Start(RunInto(pool, account, call, refusable, outcome));
    return outcome;
  }

  Outcome& Pass(WorkerPool& pool, const AccountPtr& account) {
    Outcome& outcome = outcomes_.emplace_back();
    Start(RunInto(pool, account, []() -> Result<int> { return 2; }, Refusable::kYes, outcome));
    return outcome;
  }

  void Open() {
    if (!std::exchange(open_, true)) {
      gate_.set_value();
    }
  }

  /// Opens, and waits for every call.
  void EndAll() {
    Open();
    EXPECT_TRUE(RunUntil(loop_, [this] {
      return std::ranges::all_of(outcomes_, [](const Outcome& one) { return one.has_value(); });
    }));
  }

  Loop loop_;
  std::deque<Outcome> outcomes_;
  const AccountPtr a_ = Make("a");
  const AccountPtr b_ = Make("b");

 private:
  std::promise<void> gate_;
  std::shared_future<void> opened_ = gate_.get_future().share();
  bool open_ = false;
};

TEST_F(SharedPoolTest, WhoseCallsBlockLeavesThreadsToOthers) {
  WorkerPool pool(loop_, PoolLimits{.threads = 4, .queued = 100, .threads_of_one = 3});
  for (int i = 0; i < 10; ++i) {
    Block(pool, a_);
  }
  ASSERT_TRUE(RunUntil(loop_, [&] { return pool.counts().running == 3; }));
  for (int i = 0; i < 20; ++i) {
    Outcome& passed = Pass(pool, i % 2 == 0 ? b_ : nullptr);
    ASSERT_TRUE(RunUntil(loop_, [&] { return passed.has_value(); }));
    EXPECT_EQ(passed->value(), 2);
  }
  // A call has an outcome before its thread is free.
  EXPECT_TRUE(RunUntil(loop_, [&] { return pool.counts().running == 3; }));
  EXPECT_EQ(pool.counts().queued, 7U);
  EndAll();
}

TEST_F(SharedPoolTest, OneThreadIsAlwaysLeft) {
  WorkerPool pool(loop_, PoolLimits{.threads = 2, .queued = 100, .threads_of_one = 8});
  Block(pool, a_);
  Block(pool, a_);
  Outcome& passed = Pass(pool, b_);
  EXPECT_TRUE(RunUntil(loop_, [&] { return passed.has_value(); }));
  EXPECT_EQ(pool.counts().queued, 1U);
  EndAll();
}

TEST_F(SharedPoolTest, TheyTakeTurns) {
  WorkerPool pool(loop_, PoolLimits{.threads = 1, .queued = 100, .threads_of_one = 1});
  std::vector<std::string> order;
  const auto run = [&](const AccountPtr& account) {
    const auto call = [&order, name = account->name]() -> Result<int> {
      order.push_back(name);
      return 1;
    };
    Start(RunInto(pool, account, call, Refusable::kYes, outcomes_.emplace_back()));
  };
  Block(pool, nullptr);
  ASSERT_TRUE(RunUntil(loop_, [&] { return pool.counts().running == 1; }));
  for (int i = 0; i < 3; ++i) {
    run(a_);
  }
  run(b_);
  run(b_);
  EndAll();
  EXPECT_EQ(order, (std::vector<std::string>{"a", "b", "a", "b", "a"}));
}

TEST_F(SharedPoolTest, AFullQueueOfOneRefusesOnlyItsCalls) {
  WorkerPool pool(loop_,
                  PoolLimits{.threads = 2, .queued = 100, .threads_of_one = 1, .queued_of_one = 3});
  Block(pool, a_);
  ASSERT_TRUE(RunUntil(loop_, [&] { return pool.counts().running == 1; }));
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(Block(pool, a_));
  }
  const Outcome& refused = Block(pool, a_);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->error().code, Code::kResourceExhausted);
  EXPECT_EQ(refused->error().message,
            "worker call: 3 calls of sandbox 'a' wait already "
            "(limits.max_queued_calls_per_sandbox)");
  EXPECT_FALSE(Block(pool, a_, Refusable::kNo)) << "it was refused";
  Outcome& passed = Pass(pool, b_);
  EXPECT_TRUE(RunUntil(loop_, [&] { return passed.has_value(); }));
  EXPECT_EQ(passed->value(), 2);
  EndAll();
}

TEST_F(SharedPoolTest, ChargesTheCallAndWhatFollows) {
  WorkerPool pool(loop_, 1, 10);
  bool done = false;
  Start([](WorkerPool& workers, AccountPtr account, bool& out) -> Task<void> {
    const auto call = [account]() -> Result<int> {
      EXPECT_EQ(Charged::Current(), account);
      Burn();
      return 1;
    };
    EXPECT_TRUE(co_await workers.RunFor(account, call));
    EXPECT_GT(account->cpu_ns, 0U);
    EXPECT_EQ(Charged::Current(), account);
    // Without a word it goes on for the same.
    EXPECT_TRUE(co_await workers.Run(call));
    out = true;
  }(pool, a_, done));
  EXPECT_TRUE(RunUntil(loop_, [&] { return done; }));
  EXPECT_EQ(Charged::Current(), nullptr);
}

}  // namespace
}  // namespace gantry::async
