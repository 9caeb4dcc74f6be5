// SPDX-License-Identifier: Apache-2.0
#include "core/async/co.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/descriptors/unix_socket.h>

#include "core/os/splice.h"
#include "tests/unit/async/simulated_loop.h"

namespace gantry::async {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;

/// Counts how many of it live.
class Counted {
 public:
  Counted() { ++live; }

  Counted(const Counted&) { ++live; }

  Counted(Counted&&) noexcept { ++live; }

  Counted& operator=(const Counted&) = default;
  Counted& operator=(Counted&&) = default;

  ~Counted() { --live; }

  static inline int live = 0;
};

class CoTest : public testing::Test {
 protected:
  void SetUp() override { Counted::live = 0; }

  void TearDown() override { EXPECT_EQ(Counted::live, 0); }

  /// Turns until `done` holds or ten seconds have passed.
  template <class Done>
  bool TurnUntil(Done done) {
    const auto end = std::chrono::steady_clock::now() + seconds(10);
    while (!done() && std::chrono::steady_clock::now() < end) {
      loop_.RunOnce(milliseconds(100));
    }
    return done();
  }

  Loop loop_;
};

using TaskTest = CoTest;
using OneShotTest = CoTest;
using SlotTest = CoTest;
using ScopeTest = CoTest;
using LoopWaitTest = CoTest;

Task<std::unique_ptr<int>> MakeInt(int value, Counted) { co_return std::make_unique<int>(value); }

Task<Result<int>> Half(int value) {
  if (value % 2 != 0) {
    co_return Fail(Code::kInvalidArgument, "halve '{}': odd", value);
  }
  co_return value / 2;
}

Task<Result<int>> Quarter(int value) {
  GANTRY_CO_TRY(const int half, co_await Half(value));
  GANTRY_CO_TRY(const int quarter, co_await Half(half));
  co_return quarter;
}

Task<void> Throw() {
  throw std::runtime_error("thrown in a task");
  co_return;
}

TEST_F(TaskTest, IsLazyAndFreesItsFrameUnawaited) {
  {
    const auto task = MakeInt(1, Counted());
    EXPECT_EQ(Counted::live, 1);
  }
  EXPECT_EQ(Counted::live, 0);
}

TEST_F(TaskTest, PassesMoveOnlyValues) {
  int seen = 0;
  Start([](int& out) -> Task<void> {
    Counted local;
    auto value = co_await MakeInt(42, Counted());
    out = *value;
  }(seen));
  EXPECT_EQ(seen, 42);
}

TEST_F(TaskTest, PassesErrorsThroughTheMacros) {
  std::vector<Result<int>> seen;
  Start([](std::vector<Result<int>>& out) -> Task<void> {
    out.push_back(co_await Quarter(8));
    out.push_back(co_await Quarter(6));
  }(seen));
  EXPECT_EQ(seen.at(0).value(), 2);
  EXPECT_EQ(seen.at(1).error().message, "halve '3': odd");
}

TEST_F(TaskTest, RethrowsWhereItIsAwaited) {
  std::string what;
  Start([](std::string& out) -> Task<void> {
    try {
      co_await Throw();
    } catch (const std::runtime_error& error) {
      out = error.what();
    }
  }(what));
  EXPECT_EQ(what, "thrown in a task");
}

TEST_F(TaskTest, EndsTheProcessWhereAnExceptionLeavesTheRoot) {
  EXPECT_DEATH(Start(Throw()), "an exception left a coroutine: thrown in a task");
}

Task<int> Immediate(int value) { co_return value; }

TEST_F(TaskTest, NeedsNoStackForALongRowOfTasksThatDoNotWait) {
  constexpr int kMany = 300000;
  int sum = 0;
  Start([](int& out) -> Task<void> {
    for (int i = 0; i < kMany; ++i) {
      out += co_await Immediate(1);
    }
  }(sum));
  EXPECT_EQ(sum, kMany);
}

TEST_F(TaskTest, NeedsNoStackForALongRowOfWakings) {
  constexpr int kMany = 100000;
  int rounds = 0;
  Slot slot;
  auto body = [](Slot shared, int& out) -> Task<void> {
    for (int i = 0; i < kMany; ++i) {
      auto hold = co_await shared.Acquire();
      ++out;
    }
  };
  {
    const ResumeScope scope;
    Start(body(slot, rounds));
    Start(body(slot, rounds));
  }
  EXPECT_EQ(rounds, 2 * kMany);
}

Task<void> WaitTwice(OneShot<int> first, OneShot<int> second, int& out, Counted) {
  out += co_await first.Wait();
  out += co_await second.Wait();
}

TEST_F(OneShotTest, WakesAllWhoWaitAndLetsLaterOnesThrough) {
  OneShot<int> first;
  OneShot<int> second;
  int one = 0;
  int two = 0;
  bool done = false;
  Start(WaitTwice(first, second, one, Counted()), [&] { done = true; });
  Start(WaitTwice(first, second, two, Counted()));
  EXPECT_FALSE(first.is_set());
  second.Set(10);
  EXPECT_EQ(one, 0);
  first.Set(1);
  first.Set(7);
  EXPECT_EQ(one, 11);
  EXPECT_EQ(two, 11);
  EXPECT_TRUE(done);
}

TEST_F(OneShotTest, ResumesOnlyAfterTheRunningCallback) {
  OneShot<void> event;
  std::string order;
  Start([](OneShot<void> shared, std::string& out) -> Task<void> {
    co_await shared.Wait();
    out += "waiter ";
  }(event, order));
  loop_.Post([&] {
    event.Set();
    order += "setter ";
  });
  loop_.Post([&] { order += "next"; });
  loop_.RunOnce(seconds(10));
  EXPECT_EQ(order, "setter waiter next");
}

TEST_F(OneShotTest, MayBeDestroyedRightAfterSet) {
  auto event = std::make_unique<OneShot<std::unique_ptr<int>>>();
  int seen = 0;
  Start([](OneShot<std::unique_ptr<int>>& shared, int& out) -> Task<void> {
    auto value = std::move(co_await shared.Wait());
    out = *value;
  }(*event, seen));
  {
    const ResumeScope scope;
    event->Set(std::make_unique<int>(5));
    event.reset();
  }
  EXPECT_EQ(seen, 5);
}

Task<void> WaitWithDeadline(Loop& loop, Duration deadline, OneShot<int> event,
                            std::optional<int>& out, bool& done) {
  out = co_await WithDeadline(loop, deadline, event);
  done = true;
}

TEST_F(OneShotTest, WithDeadlineGivesTheValueAndDropsTheTimer) {
  OneShot<int> event;
  std::optional<int> seen;
  bool done = false;
  Start(WaitWithDeadline(loop_, seconds(60), event, seen, done));
  EXPECT_EQ(loop_.timers(), 1U);
  event.Set(3);
  EXPECT_TRUE(done);
  EXPECT_EQ(seen, 3);
  EXPECT_EQ(loop_.timers(), 0U);
}

TEST_F(OneShotTest, WithDeadlineGivesNothingWhenItPasses) {
  OneShot<int> event;
  std::optional<int> seen = 1;
  bool done = false;
  Start(WaitWithDeadline(loop_, milliseconds(1), event, seen, done));
  EXPECT_TRUE(TurnUntil([&] { return done; }));
  EXPECT_EQ(seen, std::nullopt);
  event.Set(3);
  EXPECT_EQ(seen, std::nullopt);
}

TEST_F(OneShotTest, WithDeadlineWorksWithoutAValue) {
  OneShot<void> event;
  bool in_time = false;
  Start([](Loop& loop, OneShot<void> shared, bool& out) -> Task<void> {
    out = (co_await WithDeadline(loop, seconds(60), shared)).has_value();
  }(loop_, event, in_time));
  event.Set();
  EXPECT_TRUE(in_time);
}

Task<void> HoldUntil(Slot slot, OneShot<void> end, std::string name, std::vector<std::string>& log,
                     Counted) {
  auto hold = co_await slot.Acquire();
  log.push_back("+" + name);
  co_await end.Wait();
  log.push_back("-" + name);
}

TEST_F(SlotTest, IsGrantedInOrderOfAsking) {
  Slot slot;
  OneShot<void> end_a;
  OneShot<void> end_b;
  OneShot<void> end_c;
  std::vector<std::string> log;
  Start(HoldUntil(slot, end_a, "a", log, Counted()));
  Start(HoldUntil(slot, end_b, "b", log, Counted()));
  Start(HoldUntil(slot, end_c, "c", log, Counted()));
  end_c.Set();
  end_b.Set();
  EXPECT_THAT(log, ElementsAre("+a"));
  EXPECT_FALSE(slot.TryAcquire());
  end_a.Set();
  EXPECT_THAT(log, ElementsAre("+a", "-a", "+b", "-b", "+c", "-c"));
  EXPECT_FALSE(slot.held());
}

TEST_F(SlotTest, CannotBeOvertakenBetweenReleaseAndResumption) {
  Slot slot;
  auto hold = slot.TryAcquire();
  ASSERT_TRUE(hold);
  bool granted = false;
  Start([](Slot shared, bool& out) -> Task<void> {
    auto mine = co_await shared.Acquire();
    out = true;
  }(slot, granted));
  {
    const ResumeScope scope;
    hold.Release();
    EXPECT_FALSE(slot.TryAcquire());
    EXPECT_FALSE(granted);
  }
  EXPECT_TRUE(granted);
  EXPECT_TRUE(slot.TryAcquire());
}

TEST_F(ScopeTest, JoinWaitsForAllAndForWhatIsAddedMeanwhile) {
  Scope scope;
  OneShot<void> first;
  OneShot<void> second;
  auto wait = [](OneShot<void> event, Counted) -> Task<void> { co_await event.Wait(); };
  bool joined = false;
  scope.Spawn("first", wait(first, Counted()));
  Start(scope.Join(), [&] { joined = true; });
  {
    const ResumeScope delay;
    first.Set();
    scope.Spawn("second", wait(second, Counted()));
  }
  EXPECT_FALSE(joined);
  EXPECT_THAT(scope.names(), ElementsAre("second"));
  second.Set();
  EXPECT_TRUE(joined);
  EXPECT_EQ(scope.running(), 0U);
}

TEST_F(ScopeTest, JoinOfNothingEndsAtOnceAndFramesAreFreedBeforeIt) {
  Scope scope;
  int live = -1;
  OneShot<void> event;
  scope.Spawn("task", [](OneShot<void> shared, Counted) -> Task<void> {
    co_await shared.Wait();
  }(event, Counted()));
  Start(scope.Join(), [&] { live = Counted::live; });
  event.Set();
  EXPECT_EQ(live, 0);
  bool again = false;
  Start(scope.Join(), [&] { again = true; });
  EXPECT_TRUE(again);
}

TEST_F(LoopWaitTest, SleepEndsAtItsTime) {
  test::SimulatedLoop loop;
  bool done = false;
  Start(Sleep(loop, seconds(5)), [&] { done = true; });
  loop.Advance(seconds(5) - Duration(1));
  EXPECT_FALSE(done);
  loop.Advance(Duration(1));
  EXPECT_TRUE(done);
}

Task<void> WaitReady(Loop& loop, int fd, Duration deadline, std::optional<Result<uint32_t>>& out) {
  out = co_await Ready(loop, fd, EPOLLIN, deadline);
}

TEST_F(LoopWaitTest, ReadyTellsWhatHoldsAndCleansUp) {
  auto pipe = MakePipe();
  std::optional<Result<uint32_t>> seen;
  Start(WaitReady(loop_, pipe->first.get(), seconds(60), seen));
  loop_.RunOnce(milliseconds(0));
  EXPECT_FALSE(seen);
  ASSERT_EQ(write(pipe->second.get(), "x", 1), 1);
  EXPECT_TRUE(TurnUntil([&] { return seen.has_value(); }));
  EXPECT_EQ(seen->value(), uint32_t{EPOLLIN});
  EXPECT_EQ(loop_.watches(), 0U);
  EXPECT_EQ(loop_.timers(), 0U);
}

TEST_F(LoopWaitTest, ReadyEndsAtItsDeadline) {
  auto pipe = MakePipe();
  std::optional<Result<uint32_t>> seen;
  Start(WaitReady(loop_, pipe->first.get(), milliseconds(1), seen));
  EXPECT_TRUE(TurnUntil([&] { return seen.has_value(); }));
  EXPECT_EQ(seen->error().code, Code::kDeadlineExceeded);
  EXPECT_EQ(loop_.watches(), 0U);
}

TEST_F(LoopWaitTest, ReadyEndsWhenTheSocketIsShutDown) {
  auto sockets = UnixSocketPair();
  std::optional<Result<uint32_t>> seen;
  Start(WaitReady(loop_, sockets->first.get(), Duration::max(), seen));
  shutdown(sockets->first.get(), SHUT_RDWR);
  EXPECT_TRUE(TurnUntil([&] { return seen.has_value(); }));
  EXPECT_NE(seen->value() & EPOLLHUP, 0U);
}

}  // namespace
}  // namespace gantry::async
