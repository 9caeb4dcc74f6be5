// SPDX-License-Identifier: Apache-2.0
//
// The pool with programs that stand for sentries. Needs root.
#include "plugins/gvisor/warm/warm_pool.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>

#include "tests/unit/gvisor/fakes.h"

namespace gantry::gvisor {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::chrono::seconds kWarmLimit{20};
/// Without an end.
constexpr std::chrono::hours kEver{1};

uint64_t CountOf(const std::vector<BackendCount>& counts, const std::string& name) {
  uint64_t sum = 0;
  for (const BackendCount& count : counts) {
    sum += count.name == name ? count.value : 0;
  }
  return sum;
}

class WarmPoolTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = os::TempDir::Create();
    ASSERT_TRUE(made);
    dir_ = std::move(*made);
    times_ = {.quiet = std::chrono::milliseconds(0),
              .patience = kEver,
              .first_pause = kEver,
              .longest_pause = kEver,
              .long_life = kEver};
  }

  WarmHandler Handler(const std::string& name, uint32_t warm) const {
    WarmHandler handler{.name = name, .options = {}, .flags = {}};
    handler.options.root = dir_.path() + "/root";
    handler.options.warm = warm;
    return handler;
  }

  WarmMaker Maker() {
    return {.boot = [this](const WarmHandler& handler, const std::string& folder,
                           const WarmSpawned& spawned) { return Boot(handler, folder, spawned); },
            .build = [this](const WarmHandler&) -> Result<std::string> {
              const std::lock_guard lock(mutex_);
              return build_;
            }};
  }

  Result<WarmEntry> Boot(const WarmHandler& handler, const std::string& folder,
                         const WarmSpawned& spawned) {
    ++boots_;
    const std::lock_guard lock(mutex_);
    if (fails_) {
      return Fail(Code::kInternal, "boot the sentry: no");
    }
    SpawnRequest request;
    request.argv = {"/bin/sleep", "1000"};
    GANTRY_TRY(const auto process, context_.Spawn(std::move(request)));
    spawned(process);
    WarmEntry entry;
    entry.key = {.build = build_, .flags = {handler.name}, .root = {}, .machine = {}};
    entry.process = process;
    entry.folder = folder;
    return entry;
  }

  WarmKey Key(const std::string& handler) {
    const std::lock_guard lock(mutex_);
    return {.build = build_, .flags = {handler}, .root = {}, .machine = {}};
  }

  void Make(std::vector<WarmHandler> handlers) {
    pool_.emplace(context_, std::move(handlers), Maker(), times_);
  }

  bool Await(const std::string& name, uint64_t value) {
    return pool_->AwaitForTest([&](const auto& counts) { return CountOf(counts, name) == value; },
                               kWarmLimit);
  }

  uint64_t Count(const std::string& name) { return CountOf(pool_->Counts(), name); }

  WarmPool::Taken Take(const std::string& handler) {
    WarmPool::Starting starting(&*pool_);
    return starting.Take(Key(handler));
  }

  /// Directories of entries, of all pools.
  std::vector<std::string> Folders() const {
    std::vector<std::string> all;
    const std::string warm = dir_.path() + "/root/warm";
    for (const std::string& pool : NamesIn(warm)) {
      for (const std::string& entry : NamesIn(warm + "/" + pool)) {
        all.push_back(Format("{}/{}/{}", warm, pool, entry));
      }
    }
    return all;
  }

  os::TempDir dir_;
  FakeSandboxContext context_;
  WarmTimes times_;
  std::atomic<int> boots_ = 0;
  /// Guards what follows.
  std::mutex mutex_;
  std::string build_ = "one";
  bool fails_ = false;
  std::optional<WarmPool> pool_;
};

TEST_F(WarmPoolTest, FillsEachHandlersLane) {
  Make({Handler("a", 2), Handler("b", 1)});
  ASSERT_TRUE(Await("warm_ready", 3));
  EXPECT_EQ(Count("warm_wanted"), 3U);
  EXPECT_EQ(Count("warm_booting"), 0U);
  EXPECT_EQ(Count("warm_taken"), 0U);
  EXPECT_EQ(Count("warm_failed"), 0U);
  EXPECT_EQ(Folders().size(), 3U);
}

TEST_F(WarmPoolTest, GivesEachOnceAndMakesAnother) {
  Make({Handler("a", 1)});
  ASSERT_TRUE(Await("warm_ready", 1));
  const auto first = Take("a");
  ASSERT_TRUE(first.entry);
  EXPECT_EQ(first.handler, "a");
  ASSERT_TRUE(Await("warm_ready", 1));
  const auto second = Take("a");
  ASSERT_TRUE(second.entry);
  EXPECT_NE(first.entry->process->pid(), second.entry->process->pid());
  EXPECT_EQ(Count("warm_taken"), 2U);
  EXPECT_FALSE(first.entry->process->Ended());
}

TEST_F(WarmPoolTest, GivesNoneThatWasBootedOtherwise) {
  Make({Handler("a", 1)});
  ASSERT_TRUE(Await("warm_ready", 1));
  const auto taken = Take("b");
  EXPECT_FALSE(taken.entry);
  EXPECT_EQ(taken.missing, "runsc's flags");
  EXPECT_EQ(Count("warm_ready"), 1U);
  EXPECT_EQ(Count("warm_taken"), 0U);
}

TEST_F(WarmPoolTest, SaysThatNoneIsReady) {
  fails_ = true;
  Make({Handler("a", 1)});
  ASSERT_TRUE(Await("warm_failed", 1));
  EXPECT_EQ(Take("a").missing, "none is ready");
}

TEST_F(WarmPoolTest, BootsNoneWhileASandboxIsBeingStarted) {
  Make({Handler("a", 1)});
  ASSERT_TRUE(Await("warm_ready", 1));
  {
    WarmPool::Starting starting(&*pool_);
    ASSERT_TRUE(starting.Take(Key("a")).entry);
    EXPECT_EQ(boots_, 1);
  }
  ASSERT_TRUE(Await("warm_ready", 1));
  EXPECT_EQ(boots_, 2);
}

TEST_F(WarmPoolTest, BootsOneWhenSandboxesAreStartedWithoutEnd) {
  times_.patience = std::chrono::milliseconds(1);
  Make({Handler("a", 1)});
  ASSERT_TRUE(Await("warm_ready", 1));
  const WarmPool::Starting another(&*pool_);
  ASSERT_TRUE(Take("a").entry);
  EXPECT_TRUE(Await("warm_ready", 1));
}

TEST_F(WarmPoolTest, ReplacesOneThatEnds) {
  times_.first_pause = std::chrono::milliseconds(1);
  Make({Handler("a", 1)});
  ASSERT_TRUE(Await("warm_ready", 1));
  const auto first = context_.spawned.front();
  ASSERT_EQ(kill(first->pid().value, SIGKILL), 0);
  ASSERT_TRUE(pool_->AwaitForTest(
      [](const auto& counts) {
        return CountOf(counts, "warm_failed") == 1 && CountOf(counts, "warm_ready") == 1;
      },
      kWarmLimit));
  EXPECT_EQ(boots_, 2);
  EXPECT_EQ(Folders().size(), 1U);
  const auto taken = Take("a");
  ASSERT_TRUE(taken.entry);
  EXPECT_NE(taken.entry->process->pid(), first->pid());
}

TEST_F(WarmPoolTest, DoesNotReplaceOneThatEndsAtOnce) {
  Make({Handler("a", 1)});
  ASSERT_TRUE(Await("warm_ready", 1));
  ASSERT_EQ(kill(context_.spawned.front()->pid().value, SIGKILL), 0);
  ASSERT_TRUE(Await("warm_failed", 1));
  // Its next one is due in an hour, whatever else happens.
  {
    const WarmPool::Starting starting(&*pool_);
  }
  EXPECT_EQ(Take("a").missing, "none is ready");
  EXPECT_EQ(boots_, 1);
}

TEST_F(WarmPoolTest, NeverGivesOneThatHasEnded) {
  Make({Handler("a", 2)});
  ASSERT_TRUE(Await("warm_ready", 2));
  ASSERT_TRUE(context_.spawned.front()->Signal(SIGKILL));
  ASSERT_TRUE(context_.spawned.front()->Wait(kWarmLimit));
  const auto taken = Take("a");
  ASSERT_TRUE(taken.entry);
  EXPECT_EQ(taken.entry->process, context_.spawned.back());
}

TEST_F(WarmPoolTest, WaitsLongerAfterEachFailure) {
  fails_ = true;
  times_.first_pause = std::chrono::milliseconds(1);
  times_.longest_pause = std::chrono::milliseconds(8);
  Make({Handler("a", 1)});
  ASSERT_TRUE(pool_->AwaitForTest(
      [](const auto& counts) { return CountOf(counts, "warm_failed") >= 6; }, kWarmLimit));
  pool_->Leave();
  pool_.reset();
  for (const char* pause : {"next in 1 ms", "next in 2 ms", "next in 4 ms", "next in 8 ms"}) {
    EXPECT_THAT(context_.log, Contains(HasSubstr(pause)));
  }
  EXPECT_THAT(context_.log, Not(Contains(HasSubstr("next in 16 ms"))));
  EXPECT_THAT(context_.log.front(), HasSubstr("handler 'a': no sandbox could be booted"));
  EXPECT_THAT(context_.log.front(), HasSubstr("boot the sentry: no"));
}

TEST_F(WarmPoolTest, GoesOnWhenTheCauseIsMended) {
  fails_ = true;
  times_.first_pause = std::chrono::milliseconds(1);
  Make({Handler("a", 1)});
  ASSERT_TRUE(Await("warm_failed", 1));
  {
    const std::lock_guard lock(mutex_);
    fails_ = false;
  }
  EXPECT_TRUE(Await("warm_ready", 1));
}

TEST_F(WarmPoolTest, GivesNoneAfterOneThatWasOfNoUse) {
  Make({Handler("a", 2)});
  ASSERT_TRUE(Await("warm_ready", 2));
  {
    WarmPool::Starting starting(&*pool_);
    const auto taken = starting.Take(Key("a"));
    ASSERT_TRUE(taken.entry);
    starting.Report(taken.handler, false);
  }
  EXPECT_FALSE(Take("a").entry);
  EXPECT_EQ(Count("warm_failed"), 1U);
}

TEST_F(WarmPoolTest, LetsGoOfThoseOfAnotherBuild) {
  Make({Handler("a", 2)});
  ASSERT_TRUE(Await("warm_ready", 2));
  {
    // Whoever starts a sandbox has the pool look, which asks for the build and so waits.
    WarmPool::Starting starting(&*pool_);
    const std::lock_guard lock(mutex_);
    build_ = "two";
    const WarmKey key{.build = build_, .flags = {"a"}, .root = {}, .machine = {}};
    EXPECT_EQ(starting.Take(key).missing, "the build of runsc");
  }
  ASSERT_TRUE(pool_->AwaitForTest(
      [&](const auto& counts) { return boots_ == 4 && CountOf(counts, "warm_ready") == 2; },
      kWarmLimit));
  EXPECT_EQ(Count("warm_failed"), 0U);
  EXPECT_EQ(context_.Alive(), 2U);
  EXPECT_TRUE(Take("a").entry);
}

TEST_F(WarmPoolTest, LeavesNothing) {
  Make({Handler("a", 3)});
  ASSERT_TRUE(Await("warm_ready", 3));
  pool_->Leave();
  for (const auto& process : context_.spawned) {
    EXPECT_TRUE(process->Wait(kWarmLimit));
  }
  EXPECT_THAT(Folders(), IsEmpty());
  EXPECT_FALSE(Take("a").entry);
  pool_.reset();
  EXPECT_EQ(boots_, 3);
  EXPECT_THAT(context_.log, IsEmpty());
}

TEST_F(WarmPoolTest, LeavesWhatWasTaken) {
  Make({Handler("a", 1)});
  ASSERT_TRUE(Await("warm_ready", 1));
  const auto taken = Take("a");
  ASSERT_TRUE(taken.entry);
  pool_.reset();
  EXPECT_FALSE(taken.entry->process->Ended());
}

TEST_F(WarmPoolTest, EndsOneThatIsBooting) {
  std::latch spawned_one(1);
  std::latch may_go_on(1);
  WarmMaker maker = Maker();
  maker.boot = [&](const WarmHandler& handler, const std::string& folder,
                   const WarmSpawned& spawned) {
    auto entry = Boot(handler, folder, spawned);
    spawned_one.count_down();
    may_go_on.wait();
    return entry;
  };
  pool_.emplace(context_, std::vector<WarmHandler>{Handler("a", 1)}, std::move(maker), times_);
  spawned_one.wait();
  EXPECT_EQ(Count("warm_booting"), 1U);
  pool_->Leave();
  EXPECT_TRUE(context_.spawned.front()->Wait(kWarmLimit));
  may_go_on.count_down();
  pool_.reset();
  EXPECT_EQ(context_.Alive(), 0U);
}

TEST_F(WarmPoolTest, HasABoundForAllHandlers) {
  fails_ = true;
  std::vector<WarmHandler> handlers;
  for (int i = 0; i < 6; ++i) {
    handlers.push_back(Handler(Format("h{}", i), kMaxWarm));
  }
  Make(std::move(handlers));
  EXPECT_EQ(Count("warm_wanted"), kMaxWarmOfAll);
  pool_.reset();
  EXPECT_THAT(context_.log, Contains(HasSubstr("handler 'h5': 0 pre-booted sandboxes instead of")));
}

}  // namespace
}  // namespace gantry::gvisor
