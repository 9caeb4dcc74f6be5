// SPDX-License-Identifier: Apache-2.0
#include "core/backend/watches.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <semaphore>
#include <stdexcept>

#include <gtest/gtest.h>

#include "core/async/worker_pool.h"
#include "core/log/log.h"
#include "tests/unit/async/loop_driver.h"

namespace gantry::backend {
namespace {

class WatchOnPoolTest : public testing::Test {
 protected:
  WatchOnPoolTest() {
    log::SetSinkForTest([](std::string_view) {});
    int ends[2] = {-1, -1};
    EXPECT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    reader_.reset(ends[0]);
    writer_.reset(ends[1]);
  }

  ~WatchOnPoolTest() override {
    EXPECT_TRUE(test::Settle(loop_, pool_));
    log::SetSinkForTest({});
  }

  template <class F>
  auto OnWorker(F function) {
    auto answer = std::async(std::launch::async, std::move(function));
    EXPECT_TRUE(Until(
        [&] { return answer.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }));
    return answer.get();
  }

  std::unique_ptr<Watch> Start(std::function<void()> ready) {
    return OnWorker(
        [&] { return WatchOnPool(loop_, pool_, {"fake"}, reader_.get(), std::move(ready)); });
  }

  void End(std::unique_ptr<Watch> watch) {
    OnWorker([&] {
      watch.reset();
      return 0;
    });
  }

  void Write() { EXPECT_EQ(write(writer_.get(), "x", 1), 1); }

  bool ReadOne() {
    char byte = 0;
    return read(reader_.get(), &byte, 1) == 1;
  }

  bool Until(const std::function<bool()>& happened) { return test::RunUntil(loop_, happened); }

  async::Loop loop_;
  async::WorkerPool pool_{loop_, 4, 16};
  UniqueFd reader_;
  UniqueFd writer_;
};

TEST_F(WatchOnPoolTest, CallsOnAWorkerWhenThereIsSomething) {
  std::atomic<int> calls = 0;
  std::atomic<bool> on_loop = true;
  auto watch = Start([&] {
    on_loop = loop_.IsLoopThread();
    ReadOne();
    ++calls;
  });
  test::RunAllReady(loop_);
  EXPECT_EQ(calls, 0);
  Write();
  EXPECT_TRUE(Until([&] { return calls == 1; }));
  EXPECT_FALSE(on_loop);
  Write();
  EXPECT_TRUE(Until([&] { return calls == 2; }));
  End(std::move(watch));
}

TEST_F(WatchOnPoolTest, CallsAgainAsLongAsThereIsSomething) {
  std::atomic<int> calls = 0;
  Write();
  Write();
  Write();
  auto watch = Start([&] {
    if (ReadOne()) {
      ++calls;
    }
  });
  EXPECT_TRUE(Until([&] { return calls == 3; }));
  End(std::move(watch));
}

TEST_F(WatchOnPoolTest, TellsAHangUp) {
  std::atomic<int> calls = 0;
  auto watch = Start([&] { ++calls; });
  writer_.reset();
  EXPECT_TRUE(Until([&] { return calls > 0; }));
  End(std::move(watch));
}

TEST_F(WatchOnPoolTest, MakesOneCallAtATime) {
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  std::atomic<int> calls = 0;
  auto watch = Start([&] {
    most = std::max(most.load(), ++inside);
    ReadOne();
    --inside;
    ++calls;
  });
  for (int i = 0; i < 20; ++i) {
    Write();
    loop_.RunOnce(std::chrono::milliseconds(0));
  }
  EXPECT_TRUE(Until([&] { return calls >= 20; }));
  EXPECT_EQ(most, 1);
  End(std::move(watch));
}

TEST_F(WatchOnPoolTest, IsSilentAfterItsEnd) {
  std::atomic<int> calls = 0;
  auto watch = Start([&] { ++calls; });
  End(std::move(watch));
  Write();
  test::RunAllReady(loop_);
  EXPECT_EQ(calls, 0);
}

TEST_F(WatchOnPoolTest, EndsOnlyWhenItsCallHasReturned) {
  std::binary_semaphore inside(0);
  std::binary_semaphore go_on(0);
  std::atomic<bool> returned = false;
  auto watch = Start([&] {
    ReadOne();
    inside.release();
    go_on.acquire();
    returned = true;
  });
  Write();
  ASSERT_TRUE(Until([&] { return inside.try_acquire(); }));
  auto ending = std::async(std::launch::async, [&] {
    watch.reset();
    return returned.load();
  });
  test::RunAllReady(loop_);
  go_on.release();
  EXPECT_TRUE(
      Until([&] { return ending.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }));
  EXPECT_TRUE(ending.get());
}

TEST_F(WatchOnPoolTest, MayBeEndedByItsOwnCall) {
  std::unique_ptr<Watch> watch;
  std::atomic<int> calls = 0;
  std::atomic<bool> ended = false;
  std::binary_semaphore assigned(0);
  watch = Start([&] {
    assigned.acquire();
    ++calls;
    watch.reset();
    ended = true;
  });
  assigned.release();
  Write();
  EXPECT_TRUE(Until([&] { return ended.load(); }));
  Write();
  test::RunAllReady(loop_);
  EXPECT_EQ(calls, 1);
}

TEST_F(WatchOnPoolTest, GoesOnAfterAnException) {
  std::atomic<int> calls = 0;
  auto watch = Start([&] {
    ReadOne();
    if (++calls == 1) {
      throw std::runtime_error("out of luck");
    }
  });
  Write();
  EXPECT_TRUE(Until([&] { return calls == 1; }));
  Write();
  EXPECT_TRUE(Until([&] { return calls == 2; }));
  End(std::move(watch));
}

}  // namespace
}  // namespace gantry::backend
