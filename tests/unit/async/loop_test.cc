// SPDX-License-Identifier: Apache-2.0
#include "core/async/loop.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>

#include "core/async/ask.h"
#include "core/os/fs.h"
#include "core/os/splice.h"
#include "tests/unit/async/simulated_loop.h"

namespace gantry::async {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Turns until `done` holds or ten seconds have passed.
template <class Done>
bool TurnUntil(Loop& loop, Done done) {
  const auto end = std::chrono::steady_clock::now() + seconds(10);
  while (!done() && std::chrono::steady_clock::now() < end) {
    loop.RunOnce(milliseconds(100));
  }
  return done();
}

void Put(int fd) { ASSERT_EQ(write(fd, "x", 1), 1); }

TEST(LoopWatch, ReportsWhatIsReadyUntilItIsUnwatched) {
  Loop loop;
  auto pipe = MakePipe();
  ASSERT_TRUE(pipe);
  int calls = 0;
  uint32_t seen = 0;
  const WatchId watch = loop.Watch(pipe->first.get(), EPOLLIN, [&](uint32_t ready) {
    ++calls;
    seen = ready;
  });
  EXPECT_FALSE(loop.RunOnce(milliseconds(0)));
  Put(pipe->second.get());
  EXPECT_TRUE(loop.RunOnce(seconds(10)));
  EXPECT_TRUE(loop.RunOnce(seconds(10)));
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(seen, uint32_t{EPOLLIN});
  loop.Unwatch(watch);
  loop.Unwatch(watch);
  EXPECT_FALSE(loop.RunOnce(milliseconds(0)));
  EXPECT_EQ(loop.watches(), 0U);
}

TEST(LoopWatch, MayEndItselfAndOwnsItsFunctionUntilItReturns) {
  Loop loop;
  auto pipe = MakePipe();
  Put(pipe->second.get());
  auto owned = std::make_shared<std::string>("still here");
  const std::weak_ptr<std::string> watched = owned;
  WatchId watch;
  std::string after;
  watch = loop.Watch(pipe->first.get(), EPOLLIN, [&, owned = std::move(owned)](uint32_t) {
    loop.Unwatch(watch);
    after = *owned;
  });
  EXPECT_TRUE(loop.RunOnce(seconds(10)));
  EXPECT_EQ(after, "still here");
  EXPECT_TRUE(watched.expired());
  EXPECT_FALSE(loop.RunOnce(milliseconds(0)));
}

TEST(LoopWatch, DropsEventsOfAWatchThatAnotherCallbackEnded) {
  Loop loop;
  auto one = MakePipe();
  auto two = MakePipe();
  Put(one->second.get());
  Put(two->second.get());
  WatchId first;
  WatchId second;
  int calls = 0;
  first = loop.Watch(one->first.get(), EPOLLIN, [&](uint32_t) {
    ++calls;
    loop.Unwatch(second);
  });
  second = loop.Watch(two->first.get(), EPOLLIN, [&](uint32_t) {
    ++calls;
    loop.Unwatch(first);
  });
  EXPECT_TRUE(loop.RunOnce(seconds(10)));
  EXPECT_EQ(calls, 1);
}

TEST(LoopWatch, DoesNotGiveAnOldEventToANewOwnerOfTheNumber) {
  Loop loop;
  auto trigger = MakePipe();
  auto old = MakePipe();
  auto fresh = MakePipe();
  Put(trigger->second.get());
  Put(old->second.get());
  WatchId old_watch;
  bool replaced = false;
  int wrong = 0;
  const int number = old->first.get();
  // Both are ready in one turn; whichever comes first replaces the descriptor.
  auto replace = [&](uint32_t) {
    if (replaced) {
      return;
    }
    replaced = true;
    loop.Unwatch(old_watch);
    ASSERT_EQ(dup3(fresh->first.get(), number, O_CLOEXEC), number);
    loop.Watch(number, EPOLLIN, [&](uint32_t) { ++wrong; });
  };
  loop.Watch(trigger->first.get(), EPOLLIN, replace);
  old_watch = loop.Watch(number, EPOLLIN, replace);
  EXPECT_TRUE(loop.RunOnce(seconds(10)));
  EXPECT_TRUE(replaced);
  EXPECT_EQ(wrong, 0);
}

TEST(LoopWatch, WorksForANumberThatWasClosedWhileWatched) {
  Loop loop;
  auto old = MakePipe();
  auto fresh = MakePipe();
  const int number = old->first.get();
  loop.Watch(number, EPOLLIN, [](uint32_t) {});
  ASSERT_EQ(dup3(fresh->first.get(), number, O_CLOEXEC), number);
  bool called = false;
  loop.Watch(number, EPOLLIN, [&](uint32_t) { called = true; });
  Put(fresh->second.get());
  EXPECT_TRUE(TurnUntil(loop, [&] { return called; }));
}

TEST(LoopWatch, SharesADescriptorAmongWatches) {
  Loop loop;
  auto sockets = UnixSocketPair();
  const int fd = sockets->first.get();
  int reads = 0;
  int writes = 0;
  loop.Watch(fd, EPOLLIN, [&](uint32_t) { ++reads; });
  const WatchId writer = loop.Watch(fd, EPOLLOUT, [&](uint32_t) { ++writes; });
  EXPECT_TRUE(loop.RunOnce(seconds(10)));
  EXPECT_EQ(reads, 0);
  EXPECT_EQ(writes, 1);
  loop.Unwatch(writer);
  Put(sockets->second.get());
  EXPECT_TRUE(loop.RunOnce(seconds(10)));
  EXPECT_EQ(reads, 1);
  EXPECT_EQ(writes, 1);
}

TEST(LoopWatch, IsSilentWhilePausedEvenOnHangUp) {
  Loop loop;
  auto pipe = MakePipe();
  uint32_t seen = 0;
  const WatchId watch =
      loop.Watch(pipe->first.get(), EPOLLIN, [&](uint32_t ready) { seen = ready; });
  loop.Rearm(watch, 0);
  pipe->second.reset();
  EXPECT_FALSE(loop.RunOnce(milliseconds(0)));
  loop.Rearm(watch, EPOLLIN);
  EXPECT_TRUE(loop.RunOnce(seconds(10)));
  EXPECT_NE(seen & EPOLLHUP, 0U);
}

TEST(LoopWatch, CountsARegularFileAsReady) {
  Loop loop;
  auto dir = os::TempDir::Create();
  ASSERT_TRUE(dir);
  const std::string path = dir->path() + "/file";
  ASSERT_TRUE(ReplaceFile(path, "data", 0600));
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  uint32_t seen = 0;
  const WatchId watch = loop.Watch(file.get(), EPOLLIN, [&](uint32_t ready) { seen = ready; });
  EXPECT_TRUE(loop.RunOnce(seconds(10)));
  EXPECT_EQ(seen, uint32_t{EPOLLIN});
  loop.Rearm(watch, 0);
  EXPECT_FALSE(loop.RunOnce(milliseconds(0)));
}

TEST(LoopTimer, RunsInTheOrderOfDueTimes) {
  test::SimulatedLoop loop;
  std::string order;
  loop.After(milliseconds(4), [&] { order += 'c'; });
  loop.After(milliseconds(0), [&] { order += 'a'; });
  loop.After(milliseconds(0), [&] { order += 'b'; });
  loop.Advance(milliseconds(4));
  EXPECT_EQ(order, "abc");
  EXPECT_EQ(loop.timers(), 0U);
  EXPECT_FALSE(loop.NextDue());
}

TEST(LoopTimer, GoesByTheClockOfItsLoop) {
  test::SimulatedLoop loop;
  std::vector<TimePoint> times;
  const TimePoint begin = loop.Now();
  std::function<void()> again = [&] {
    times.push_back(loop.Now());
    loop.After(seconds(1), [&] { again(); });
  };
  loop.After(seconds(1), [&] { again(); });
  EXPECT_EQ(loop.NextDue(), begin + seconds(1));
  loop.Advance(seconds(1) - Duration(1));
  EXPECT_TRUE(times.empty());
  loop.Advance(seconds(2) + Duration(1));
  EXPECT_EQ(times, (std::vector{begin + seconds(1), begin + seconds(2), begin + seconds(3)}));
}

/// A turn that waits for a descriptor does not wait for a timer that cannot come due.
TEST(LoopTimer, OfAClockThatStandsStillEndsNoWait) {
  test::SimulatedLoop loop;
  bool called = false;
  loop.After(Duration(1), [&] { called = true; });
  EXPECT_EQ(loop.clock.Until(loop.Now() + Duration(1)), std::nullopt);
  EXPECT_FALSE(loop.RunOnce(milliseconds(0)));
  EXPECT_FALSE(called);
  loop.Advance(Duration(1));
  EXPECT_TRUE(called);
}

TEST(LoopTimer, IsWaitedForByTheKernelsClock) {
  Loop loop;
  bool called = false;
  loop.After(milliseconds(2), [&] { called = true; });
  EXPECT_EQ(SteadyClock().Until(TimePoint()), Duration::zero());
  EXPECT_GT(SteadyClock().Until(TimePoint::max()), std::chrono::hours(1));
  EXPECT_TRUE(TurnUntil(loop, [&] { return called; }));
}

TEST(LoopTimer, IsNotCalledAfterCancelEvenWhenDue) {
  Loop loop;
  TimerId second;
  bool called = false;
  const TimerId first = loop.After(Duration(0), [&] { loop.Cancel(second); });
  second = loop.After(Duration(0), [&] { called = true; });
  EXPECT_TRUE(loop.RunOnce(seconds(10)));
  loop.Cancel(first);
  loop.RunOnce(milliseconds(0));
  EXPECT_FALSE(called);
}

TEST(LoopTimer, ThatRenewsItselfLetsOthersRun) {
  Loop loop;
  int turns = 0;
  std::function<void()> again = [&] {
    ++turns;
    loop.After(Duration(0), [&] { again(); });
  };
  again();
  EXPECT_TRUE(loop.RunOnce(seconds(10)));
  EXPECT_EQ(turns, 2);
}

TEST(LoopTimer, MayBeForever) {
  Loop loop;
  loop.After(Duration::max(), [] { FAIL(); });
  EXPECT_FALSE(loop.RunOnce(milliseconds(0)));
}

TEST(LoopThread, IsTheOnlyOneWhileALoopTurns) {
  Loop loop;
  EXPECT_TRUE(loop.MayBeUsedHere()) << "nobody turns it yet";
  std::thread turning([&] { loop.Run(); });
  // Its answer comes from within a turn.
  EXPECT_TRUE(Call(loop, [&] { return loop.MayBeUsedHere() && loop.IsLoopThread(); }));
  EXPECT_FALSE(loop.MayBeUsedHere());
#ifndef NDEBUG
  EXPECT_DEATH(loop.After(Duration(0), [] {}), "After.*is for the loop's thread only");
#endif
  loop.Stop();
  turning.join();
  EXPECT_TRUE(loop.MayBeUsedHere()) << "what it leaves may be taken down";
}

TEST(LoopPost, WakesTheLoopFromAnotherThreadInOrder) {
  Loop loop;
  std::string order;
  std::thread thread([&] {
    loop.Post([&] { order += 'a'; });
    loop.Post([&] { order += 'b'; });
    loop.Post([&] { loop.Stop(); });
  });
  loop.Run();
  thread.join();
  EXPECT_EQ(order, "ab");
}

TEST(LoopPost, FromAPostedFunctionRunsInTheNextTurn) {
  Loop loop;
  int calls = 0;
  loop.Post([&] {
    ++calls;
    loop.Post([&] { ++calls; });
  });
  EXPECT_TRUE(loop.RunOnce(seconds(10)));
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(loop.RunOnce(seconds(10)));
  EXPECT_EQ(calls, 2);
}

TEST(LoopPost, SurvivesManyThreads) {
  Loop loop;
  constexpr int kThreads = 4;
  constexpr int kPosts = 2000;
  int calls = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < kPosts; ++k) {
        loop.Post([&] { ++calls; });
      }
    });
  }
  EXPECT_TRUE(TurnUntil(loop, [&] { return calls == kThreads * kPosts; }));
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST(LoopStop, BeforeRunMakesItReturn) {
  Loop loop;
  loop.Stop();
  loop.Run();
  SUCCEED();
}

TEST(LoopDestruction, DropsFunctionsThatUseTheLoop) {
  struct Ender {
    Loop* loop;
    WatchId* other;

    ~Ender() { loop->Unwatch(*other); }
  };

  auto pipe = MakePipe();
  WatchId other;
  {
    Loop loop;
    other = loop.Watch(pipe->first.get(), EPOLLIN, [](uint32_t) {});
    loop.Post([ender = std::make_unique<Ender>(&loop, &other)] {});
    loop.After(seconds(60), [ender = std::make_unique<Ender>(&loop, &other)] {});
    loop.Watch(pipe->second.get(), 0,
               [ender = std::make_unique<Ender>(&loop, &other)](uint32_t) {});
  }
  SUCCEED();
}

TEST(LoopSlowTurn, IsReported) {
  Loop loop;
  int reports = 0;
  loop.SetSlowTurnObserver(Duration(1), [&](Duration length) {
    EXPECT_GE(length, Duration(1));
    ++reports;
  });
  loop.Post([] {});
  loop.RunOnce(seconds(10));
  EXPECT_EQ(reports, 1);
  loop.SetSlowTurnObserver(std::chrono::hours(1), [&](Duration) { ++reports; });
  loop.Post([] {});
  loop.RunOnce(seconds(10));
  EXPECT_EQ(reports, 1);
}

}  // namespace
}  // namespace gantry::async
