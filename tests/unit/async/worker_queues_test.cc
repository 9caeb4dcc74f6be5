// SPDX-License-Identifier: Apache-2.0
//
// Calls that take long or do not return: what they leave to others, and to their own account.
#include "core/async/worker_queues.h"

#include <algorithm>
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

using std::chrono::milliseconds;
using Outcome = std::optional<Result<int>>;

class WorkerQueuesTest : public testing::Test {
 protected:
  WorkerQueuesTest() {
    for (int i = 0; i < 9; ++i) {
      accounts_.push_back(std::make_shared<Account>("s" + std::to_string(i)));
    }
  }

  ~WorkerQueuesTest() override { EndAll(); }

  /// As of a backend's workers, where nobody is waited for.
  static PoolLimits Limits() {
    return {.threads = 10,
            .queued = 1000,
            .threads_of_one = 4,
            .more_for_short = 1,
            .more_for_watches = 1,
            .most_threads = 40,
            .slow_after = milliseconds(1)};
  }

  /// Lives until what blocks in it has been let go, also where a test ends early.
  WorkerPool& Pool(PoolLimits limits) { return pool_.emplace(loop_, std::move(limits)); }

  static Task<void> RunInto(WorkerPool& pool, AccountPtr account, std::function<Result<int>()> call,
                            CallTerms terms, Outcome& out) {
    out = co_await pool.RunFor(std::move(account), std::move(call), std::move(terms));
  }

  Outcome& Call(WorkerPool& pool, const AccountPtr& account, CallTerms terms,
                std::function<Result<int>()> call) {
    Outcome& outcome = outcomes_.emplace_back();
    Start(RunInto(pool, account, std::move(call), std::move(terms), outcome));
    return outcome;
  }

  /// Until the end of the test, or `Open`.
  Outcome& Block(WorkerPool& pool, const AccountPtr& account, CallTerms terms = {}) {
    return Call(pool, account, std::move(terms), [opened = opened_]() -> Result<int> {
      opened.wait();
      return 1;
    });
  }

  /// It hangs at once.
  Outcome& Hang(WorkerPool& pool, const AccountPtr& account, CallKind kind = CallKind::kLong,
                Refusable refusable = Refusable::kYes) {
    return Block(pool, account,
                 {.refusable = refusable, .kind = kind, .hangs_at = TimePoint(), .what = "nap"});
  }

  Outcome& Pass(WorkerPool& pool, const AccountPtr& account, CallTerms terms = {}) {
    return Call(pool, account, std::move(terms), []() -> Result<int> { return 2; });
  }

  void ExpectPasses(WorkerPool& pool, const AccountPtr& account, CallTerms terms = {}) {
    const Outcome& outcome = Pass(pool, account, std::move(terms));
    ASSERT_TRUE(Until([&] { return outcome.has_value(); }));
    EXPECT_EQ(outcome->value_or(0), 2);
  }

  bool Until(const std::function<bool()>& happened) { return test::RunUntil(loop_, happened); }

  void EndAll() {
    if (!std::exchange(open_, true)) {
      gate_.set_value();
    }
    EXPECT_TRUE(Until([this] {
      return std::ranges::all_of(outcomes_, [](const Outcome& one) { return one.has_value(); });
    }));
  }

  Loop loop_;
  std::deque<Outcome> outcomes_;
  std::vector<AccountPtr> accounts_;
  std::vector<std::string> lost_;

 private:
  std::optional<WorkerPool> pool_;
  std::promise<void> gate_;
  std::shared_future<void> opened_ = gate_.get_future().share();
  bool open_ = false;
};

TEST_F(WorkerQueuesTest, TwoThatHangWithAllTheirCallsLeaveThreadsToOthers) {
  WorkerPool& pool = Pool(Limits());
  for (int i = 0; i < 20; ++i) {
    Hang(pool, accounts_[i % 2], CallKind::kWatch, Refusable::kNo);
  }
  ASSERT_TRUE(Until([&] { return pool.counts().lost == 12; }));
  ExpectPasses(pool, accounts_[8]);
  EXPECT_EQ(pool.counts().queued, 8U);
  EndAll();
}

TEST_F(WorkerQueuesTest, EightThatHangLeaveThreadsToOthers) {
  PoolLimits limits = Limits();
  limits.threads = 8;
  WorkerPool& pool = Pool(limits);
  for (int i = 0; i < 8; ++i) {
    Hang(pool, accounts_[i]);
  }
  ASSERT_TRUE(Until([&] { return pool.counts().lost == 8; }));
  ExpectPasses(pool, accounts_[8]);
  EndAll();
}

TEST_F(WorkerQueuesTest, WhatHangsLeavesItsThreadWhereSlowCallsKeepTheirs) {
  PoolLimits limits = Limits();
  limits.threads = 2;
  limits.slow_after = Duration::max();
  WorkerPool& pool = Pool(limits);
  Hang(pool, accounts_[0]);
  Hang(pool, accounts_[1]);
  ASSERT_TRUE(Until([&] { return pool.counts().lost == 2; }));
  ExpectPasses(pool, accounts_[8]);
  EndAll();
}

TEST_F(WorkerQueuesTest, CallsThatTakeLongKeepNobodyWaiting) {
  PoolLimits limits = Limits();
  limits.threads = 2;
  limits.most_threads = 4;
  WorkerPool& pool = Pool(limits);
  Block(pool, nullptr);
  Block(pool, nullptr);
  ExpectPasses(pool, accounts_[0]);
  EXPECT_EQ(pool.counts().lost, 0U);
  Block(pool, nullptr);
  Block(pool, nullptr);
  ASSERT_TRUE(Until([&] { return pool.counts().running == 4; }));
  // Nothing takes their place any more.
  const Outcome& waits = Pass(pool, accounts_[0]);
  EXPECT_EQ(pool.counts().threads, 4U);
  EXPECT_FALSE(waits);
  EndAll();
  EXPECT_TRUE(waits);
}

TEST_F(WorkerQueuesTest, AThreadThatReturnsTakesUpItsPlaceOrEnds) {
  PoolLimits limits = Limits();
  limits.threads = 2;
  WorkerPool& pool = Pool(limits);
  Hang(pool, accounts_[0]);
  Hang(pool, accounts_[1]);
  ASSERT_TRUE(Until([&] { return pool.counts().lost == 2; }));
  Block(pool, accounts_[2]);
  Block(pool, accounts_[3]);
  ASSERT_TRUE(Until([&] { return pool.counts().running == 4; }));
  EndAll();
  EXPECT_TRUE(Until([&] {
    const WorkerPool::Counts counts = pool.counts();
    return counts.threads == 2 && counts.idle == 2 && counts.lost == 0;
  }));
}

TEST_F(WorkerQueuesTest, WhatHangsKeepsItsPlaceInItsLane) {
  WorkerPool& pool = Pool(Limits());
  for (int i = 0; i < 3; ++i) {
    Hang(pool, accounts_[0]);
  }
  ASSERT_TRUE(Until([&] { return pool.counts().lost == 3; }));
  ExpectPasses(pool, accounts_[0]);
  Outcome& waits = Block(pool, accounts_[0]);
  Outcome& last = Pass(pool, accounts_[0]);
  ASSERT_TRUE(Until([&] { return pool.counts().running == 4 && pool.counts().queued == 1; }));
  EXPECT_FALSE(waits || last);
  EndAll();
}

TEST_F(WorkerQueuesTest, WhoseCallsAllHangIsRefusedAtOnce) {
  WorkerPool& pool = Pool(Limits());
  for (int i = 0; i < 4; ++i) {
    Hang(pool, accounts_[0]);
  }
  // It waits, and then is refused, too.
  const Outcome& waited = Pass(pool, accounts_[0]);
  const Outcome& kept = Pass(pool, accounts_[0], {.refusable = Refusable::kNo});
  ASSERT_TRUE(Until([&] { return waited.has_value(); }));
  const Outcome& refused = Pass(pool, accounts_[0]);
  ASSERT_TRUE(refused);
  for (const Outcome* one : {&waited, &refused}) {
    EXPECT_EQ((*one)->error().code, Code::kUnavailable);
    EXPECT_EQ((*one)->error().message,
              "worker call: 4 calls of sandbox 's0' hang, nap among them; end it, or restart the "
              "engine (gantryctl restart)");
  }
  EXPECT_FALSE(kept);
  ExpectPasses(pool, accounts_[1]);
  // It can still be signalled.
  ExpectPasses(pool, accounts_[0], {.refusable = Refusable::kUnlessHung, .kind = CallKind::kShort});
  EndAll();
  EXPECT_EQ(kept->value_or(0), 2);
  ASSERT_TRUE(Until([&] { return pool.counts().lost == 0; }));
  ExpectPasses(pool, accounts_[0]);
}

TEST_F(WorkerQueuesTest, LongCallsLeaveRoomToShortOnesAndBothToWatches) {
  WorkerPool& pool = Pool(Limits());
  for (int i = 0; i < 6; ++i) {
    Block(pool, accounts_[0]);
  }
  ASSERT_TRUE(Until([&] { return pool.counts().running == 4; }));
  ExpectPasses(pool, accounts_[0], {.kind = CallKind::kShort});
  // A call has its outcome before it is out of its queue.
  ASSERT_TRUE(Until([&] { return pool.counts().running == 4; }));
  Block(pool, accounts_[0], {.kind = CallKind::kShort});
  ASSERT_TRUE(Until([&] { return pool.counts().running == 5; }));
  const Outcome& waits = Pass(pool, accounts_[0], {.kind = CallKind::kShort});
  ExpectPasses(pool, accounts_[0], {.kind = CallKind::kWatch});
  EXPECT_FALSE(waits);
  EndAll();
}

TEST_F(WorkerQueuesTest, WatchesAndCallsOfOneLeaveThreadsToOthers) {
  PoolLimits limits = Limits();
  limits.slow_after = Duration::max();
  WorkerPool& pool = Pool(limits);
  for (int i = 0; i < 20; ++i) {
    Block(pool, accounts_[0], {.kind = i % 2 == 0 ? CallKind::kLong : CallKind::kWatch});
  }
  ASSERT_TRUE(Until([&] { return pool.counts().running == 6; }));
  ExpectPasses(pool, accounts_[1]);
  EXPECT_EQ(pool.counts().queued, 14U);
  EndAll();
}

TEST_F(WorkerQueuesTest, SaysWhatHangs) {
  PoolLimits limits = Limits();
  limits.hangs_after = milliseconds(1);
  limits.on_lost = [this](const std::string& what) { lost_.push_back(what); };
  WorkerPool& pool = Pool(limits);
  Hang(pool, accounts_[0]);
  ASSERT_TRUE(Until([&] { return lost_.size() == 1; }));
  Block(pool, nullptr, {.what = "without a limit of its own"});
  ASSERT_TRUE(Until([&] { return lost_.size() == 2; }));
  Block(pool, accounts_[1]);
  ASSERT_TRUE(Until([&] { return lost_.size() == 3; }));
  EXPECT_EQ(lost_,
            (std::vector<std::string>{"nap", "without a limit of its own", "a call for 's1'"}));
  EndAll();
}

TEST_F(WorkerQueuesTest, ACallThatHadToWaitHasTimeOfItsOwn) {
  PoolLimits limits = Limits();
  limits.threads = 1;
  limits.most_threads = 1;
  limits.slow_after = std::chrono::hours(1);
  WorkerPool& pool = Pool(limits);
  Hang(pool, accounts_[0]);
  Hang(pool, accounts_[1]);
  test::RunAllReady(loop_);
  EXPECT_EQ(pool.counts().lost, 0U);
  EndAll();
}

}  // namespace
}  // namespace gantry::async
