// SPDX-License-Identifier: Apache-2.0
#include "core/async/worker_pool.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/async/loop_driver.h"

namespace gantry::async {
namespace {

using std::chrono::seconds;
using test::RunUntil;

class WorkerPoolTest : public testing::Test {
 protected:
  Loop loop_;
};

using Outcome = std::optional<Result<int>>;

template <class F>
Task<void> RunInto(WorkerPool& pool, F function, Outcome& out) {
  out = co_await pool.Run(std::move(function));
}

/// Makes functions that block until `Open`.
class Barrier {
 public:
  Result<int> Pass() {
    ++waiting;
    opened_.wait();
    return 1;
  }

  void Open() { open_.set_value(); }

  std::atomic<int> waiting = 0;

 private:
  std::promise<void> open_;
  std::shared_future<void> opened_ = open_.get_future().share();
};

TEST_F(WorkerPoolTest, CallsElsewhereAndResumesOnTheLoopsThread) {
  WorkerPool pool(loop_, 2, 10);
  std::thread::id worker;
  std::thread::id resumed;
  Start([](WorkerPool& workers, std::thread::id& w, std::thread::id& r) -> Task<void> {
    auto result = co_await workers.Run([&w]() -> Result<std::unique_ptr<int>> {
      w = std::this_thread::get_id();
      return std::make_unique<int>(3);
    });
    EXPECT_EQ(**result, 3);
    r = std::this_thread::get_id();
  }(pool, worker, resumed));
  EXPECT_TRUE(RunUntil(loop_, [&] { return resumed != std::thread::id(); }));
  EXPECT_EQ(resumed, std::this_thread::get_id());
  EXPECT_NE(worker, resumed);
}

TEST_F(WorkerPoolTest, GivesErrorsAndTurnsExceptionsIntoThem) {
  WorkerPool pool(loop_, 2, 10);
  Outcome failed;
  Outcome thrown;
  Outcome odd;
  Start(RunInto(pool, []() -> Result<int> { return Fail(Code::kNotFound, "no"); }, failed));
  Start(RunInto(pool, []() -> Result<int> { throw std::runtime_error("oops"); }, thrown));
  Start(RunInto(pool, []() -> Result<int> { throw 5; }, odd));
  EXPECT_TRUE(RunUntil(loop_, [&] { return failed && thrown && odd; }));
  EXPECT_EQ(failed->error().code, Code::kNotFound);
  EXPECT_EQ(thrown->error().code, Code::kInternal);
  EXPECT_EQ(thrown->error().message, "worker call threw: oops");
  EXPECT_EQ(odd->error().code, Code::kInternal);
}

TEST_F(WorkerPoolTest, StartsNoThreadBeforeThereIsWork) {
  const WorkerPool pool(loop_, 4, 10);
  EXPECT_EQ(pool.counts().threads, 0U);
}

TEST_F(WorkerPoolTest, RefusesWhatDoesNotFitItsQueue) {
  Barrier barrier;
  WorkerPool pool(loop_, 2, 1);
  std::vector<Outcome> outcomes(4);
  for (Outcome& outcome : outcomes) {
    Start(RunInto(pool, [&] { return barrier.Pass(); }, outcome));
  }
  EXPECT_FALSE(outcomes[0] || outcomes[1] || outcomes[2]);
  ASSERT_TRUE(outcomes[3]);
  EXPECT_EQ(outcomes[3]->error().code, Code::kResourceExhausted);
  EXPECT_EQ(pool.counts().threads, 2U);
  barrier.Open();
  EXPECT_TRUE(RunUntil(loop_, [&] { return outcomes[0] && outcomes[1] && outcomes[2]; }));
  EXPECT_EQ(outcomes[2]->value(), 1);
}

TEST_F(WorkerPoolTest, UsesAnIdleThreadAgain) {
  WorkerPool pool(loop_, 4, 10);
  for (int i = 0; i < 20; ++i) {
    Outcome outcome;
    // A call that has returned leaves its thread idle a moment later.
    ASSERT_TRUE(RunUntil(loop_, [&] { return pool.counts().idle == pool.counts().threads; }));
    Start(RunInto(pool, []() -> Result<int> { return 1; }, outcome));
    ASSERT_TRUE(RunUntil(loop_, [&] { return outcome.has_value(); }));
  }
  EXPECT_EQ(pool.counts().threads, 1U);
}

TEST_F(WorkerPoolTest, WakesAThreadForEachCallOfABurst) {
  WorkerPool pool(loop_, 4, 10);
  for (int burst = 0; burst < 3; ++burst) {
    Barrier barrier;
    std::vector<Outcome> outcomes(4);
    for (Outcome& outcome : outcomes) {
      Start(RunInto(pool, [&] { return barrier.Pass(); }, outcome));
    }
    EXPECT_TRUE(RunUntil(loop_, [&] { return barrier.waiting == 4; })) << "in burst " << burst;
    barrier.Open();
    EXPECT_TRUE(RunUntil(loop_, [&] {
      return std::ranges::all_of(outcomes, [](const Outcome& one) { return one.has_value(); }) &&
             pool.counts().idle == 4;
    }));
  }
  EXPECT_EQ(pool.counts().threads, 4U);
}

TEST_F(WorkerPoolTest, DestructionEndsWhatRunsAndCancelsWhatWaits) {
  Barrier barrier;
  Outcome running;
  Outcome waiting;
  std::thread opener;
  {
    WorkerPool pool(loop_, 1, 5);
    Start(RunInto(pool, [&] { return barrier.Pass(); }, running));
    ASSERT_TRUE(RunUntil(loop_, [&] { return barrier.waiting == 1; }));
    Start(RunInto(pool, []() -> Result<int> { return 2; }, waiting));
    // Opens when the destructor has taken the queue; until then it cannot end.
    opener = std::thread([&] {
      while (pool.counts().queued != 0) {
        std::this_thread::yield();
      }
      barrier.Open();
    });
  }
  opener.join();
  EXPECT_TRUE(RunUntil(loop_, [&] { return running && waiting; }));
  EXPECT_EQ(running->value(), 1);
  EXPECT_EQ(waiting->error().code, Code::kCanceled);
}

TEST_F(WorkerPoolTest, CarriesManyCalls) {
  WorkerPool pool(loop_, 4, 5000);
  constexpr int kCalls = 5000;
  int sum = 0;
  for (int i = 0; i < kCalls; ++i) {
    Start([](WorkerPool& workers, int& out) -> Task<void> {
      auto result = co_await workers.Run([]() -> Result<int> { return 1; });
      out += result.value();
    }(pool, sum));
  }
  EXPECT_TRUE(RunUntil(loop_, [&] { return sum == kCalls; }));
}

}  // namespace
}  // namespace gantry::async
