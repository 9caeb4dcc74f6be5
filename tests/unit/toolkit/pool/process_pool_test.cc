// SPDX-License-Identifier: Apache-2.0
//
// The pool with programs that do nothing. Needs root.

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/testing/sandbox_context.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/pool/process_pool.h>

#include "core/os/fs.h"
#include "tests/unit/toolkit/names_in.h"

namespace gantry {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::chrono::seconds kPoolLimit{20};
/// Without an end.
constexpr std::chrono::hours kEver{1};

uint64_t CountOf(const std::vector<BackendCount>& counts, const std::string& name) {
  uint64_t sum = 0;
  for (const BackendCount& count : counts) {
    sum += count.name == name ? count.value : 0;
  }
  return sum;
}

struct Sleeper : PooledProcess {
  std::string LastWords() const override { return "slept badly"; }

  std::string kind;
};

/// Nothing but the kind counts.
ProcessPool::Difference IsOf(const std::string& kind) {
  return [kind](const PooledProcess& one) -> std::string_view {
    return static_cast<const Sleeper&>(one).kind == kind ? "" : "its kind";
  };
}

class ProcessPoolTest : public testing::Test {
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

  PoolHandler Handler(const std::string& name, uint32_t wanted) const {
    return {.name = name, .wanted = wanted, .root = dir_.path() + "/root"};
  }

  PoolMaker Maker(const std::vector<PoolHandler>& handlers) {
    PoolMaker maker;
    maker.make = [this, handlers](size_t handler, const std::string& folder,
                                  const PoolMaker::Spawned& spawned) {
      return MakeOne(handlers.at(handler).name, folder, spawned);
    };
    maker.build = [this](size_t) -> Result<std::string> {
      const std::lock_guard lock(mutex_);
      return build_;
    };
    return maker;
  }

  Result<std::unique_ptr<PooledProcess>> MakeOne(const std::string& kind, const std::string& folder,
                                                 const PoolMaker::Spawned& spawned) {
    ++boots_;
    const std::lock_guard lock(mutex_);
    if (fails_) {
      return Fail(Code::kInternal, "boot the sentry: no");
    }
    SpawnRequest request;
    request.argv = {"/bin/sleep", "1000"};
    GANTRY_TRY(const auto process, context_.Spawn(std::move(request)));
    spawned(process);
    auto one = std::make_unique<Sleeper>();
    one->kind = kind;
    one->build = build_;
    one->process = process;
    one->folder = folder;
    return one;
  }

  void Make(std::vector<PoolHandler> handlers) {
    PoolMaker maker = Maker(handlers);
    pool_.emplace(context_, std::move(handlers), std::move(maker), times_);
  }

  bool Await(const std::string& name, uint64_t value) {
    return pool_->AwaitForTest([&](const auto& counts) { return CountOf(counts, name) == value; },
                               kPoolLimit);
  }

  /// Of a handler that goes on failing: so many, or more by now.
  bool AwaitFailures(uint64_t least) {
    return pool_->AwaitForTest(
        [least](const auto& counts) { return CountOf(counts, "warm_failed") >= least; },
        kPoolLimit);
  }

  uint64_t Count(const std::string& name) { return CountOf(pool_->Counts(), name); }

  ProcessPool::Taken Take(const std::string& handler) {
    ProcessPool::Starting starting(&*pool_);
    return starting.Take(IsOf(handler));
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
  PoolTimes times_;
  std::atomic<int> boots_ = 0;
  /// Guards what follows.
  std::mutex mutex_;
  std::string build_ = "one";
  bool fails_ = false;
  std::optional<ProcessPool> pool_;
};

TEST_F(ProcessPoolTest, FillsEachHandlersLane) {
  Make({Handler("a", 2), Handler("b", 1)});
  ASSERT_TRUE(Await("warm_ready", 3));
  EXPECT_EQ(Count("warm_wanted"), 3U);
  EXPECT_EQ(Count("warm_booting"), 0U);
  EXPECT_EQ(Count("warm_taken"), 0U);
  EXPECT_EQ(Count("warm_failed"), 0U);
  EXPECT_EQ(Folders().size(), 3U);
}

TEST_F(ProcessPoolTest, GivesEachOnceAndMakesAnother) {
  Make({Handler("a", 1)});
  ASSERT_TRUE(Await("warm_ready", 1));
  const auto first = Take("a");
  ASSERT_TRUE(first.process);
  EXPECT_EQ(first.handler, "a");
  ASSERT_TRUE(Await("warm_ready", 1));
  const auto second = Take("a");
  ASSERT_TRUE(second.process);
  EXPECT_NE(first.process->process->pid(), second.process->process->pid());
  EXPECT_EQ(Count("warm_taken"), 2U);
  EXPECT_FALSE(first.process->process->Ended());
}

TEST_F(ProcessPoolTest, GivesNoneThatWasBootedOtherwise) {
  Make({Handler("a", 1)});
  ASSERT_TRUE(Await("warm_ready", 1));
  const auto taken = Take("b");
  EXPECT_FALSE(taken.process);
  EXPECT_EQ(taken.missing, "its kind");
  EXPECT_EQ(Count("warm_ready"), 1U);
  EXPECT_EQ(Count("warm_taken"), 0U);
}

TEST_F(ProcessPoolTest, SaysThatNoneIsReady) {
  fails_ = true;
  Make({Handler("a", 1)});
  ASSERT_TRUE(Await("warm_failed", 1));
  EXPECT_EQ(Take("a").missing, "none is ready");
}

TEST_F(ProcessPoolTest, BootsNoneWhileASandboxIsBeingStarted) {
  Make({Handler("a", 1)});
  ASSERT_TRUE(Await("warm_ready", 1));
  {
    ProcessPool::Starting starting(&*pool_);
    ASSERT_TRUE(starting.Take(IsOf("a")).process);
    EXPECT_EQ(boots_, 1);
  }
  ASSERT_TRUE(Await("warm_ready", 1));
  EXPECT_EQ(boots_, 2);
}

TEST_F(ProcessPoolTest, BootsOneWhenSandboxesAreStartedWithoutEnd) {
  times_.patience = std::chrono::milliseconds(1);
  Make({Handler("a", 1)});
  ASSERT_TRUE(Await("warm_ready", 1));
  const ProcessPool::Starting another(&*pool_);
  ASSERT_TRUE(Take("a").process);
  EXPECT_TRUE(Await("warm_ready", 1));
}

TEST_F(ProcessPoolTest, ReplacesOneThatEnds) {
  times_.first_pause = std::chrono::milliseconds(1);
  Make({Handler("a", 1)});
  ASSERT_TRUE(Await("warm_ready", 1));
  const auto first = context_.spawned.front();
  ASSERT_EQ(kill(first->pid().value, SIGKILL), 0);
  ASSERT_TRUE(pool_->AwaitForTest(
      [](const auto& counts) {
        return CountOf(counts, "warm_failed") == 1 && CountOf(counts, "warm_ready") == 1;
      },
      kPoolLimit));
  EXPECT_EQ(boots_, 2);
  EXPECT_EQ(Folders().size(), 1U);
  EXPECT_THAT(context_.log, Contains(HasSubstr("has ended by itself: slept badly")));
  const auto taken = Take("a");
  ASSERT_TRUE(taken.process);
  EXPECT_NE(taken.process->process->pid(), first->pid());
}

TEST_F(ProcessPoolTest, DoesNotReplaceOneThatEndsAtOnce) {
  Make({Handler("a", 1)});
  ASSERT_TRUE(Await("warm_ready", 1));
  ASSERT_EQ(kill(context_.spawned.front()->pid().value, SIGKILL), 0);
  ASSERT_TRUE(Await("warm_failed", 1));
  // Its next one is due in an hour, whatever else happens.
  {
    const ProcessPool::Starting starting(&*pool_);
  }
  EXPECT_EQ(Take("a").missing, "none is ready");
  EXPECT_EQ(boots_, 1);
}

TEST_F(ProcessPoolTest, NeverGivesOneThatHasEnded) {
  Make({Handler("a", 2)});
  ASSERT_TRUE(Await("warm_ready", 2));
  ASSERT_TRUE(context_.spawned.front()->Signal(SIGKILL));
  ASSERT_TRUE(context_.spawned.front()->Wait(kPoolLimit));
  const auto taken = Take("a");
  ASSERT_TRUE(taken.process);
  EXPECT_EQ(taken.process->process, context_.spawned.back());
}

TEST_F(ProcessPoolTest, WaitsLongerAfterEachFailure) {
  fails_ = true;
  times_.first_pause = std::chrono::milliseconds(1);
  times_.longest_pause = std::chrono::milliseconds(8);
  Make({Handler("a", 1)});
  ASSERT_TRUE(AwaitFailures(6));
  pool_->Leave();
  pool_.reset();
  for (const char* pause : {"next in 1 ms", "next in 2 ms", "next in 4 ms", "next in 8 ms"}) {
    EXPECT_THAT(context_.log, Contains(HasSubstr(pause)));
  }
  EXPECT_THAT(context_.log, Not(Contains(HasSubstr("next in 16 ms"))));
  EXPECT_THAT(context_.log.front(), HasSubstr("handler 'a': no sandbox could be booted"));
  EXPECT_THAT(context_.log.front(), HasSubstr("boot the sentry: no"));
}

TEST_F(ProcessPoolTest, GoesOnWhenTheCauseIsMended) {
  fails_ = true;
  times_.first_pause = std::chrono::milliseconds(1);
  Make({Handler("a", 1)});
  ASSERT_TRUE(AwaitFailures(1));
  {
    const std::lock_guard lock(mutex_);
    fails_ = false;
  }
  EXPECT_TRUE(Await("warm_ready", 1));
}

TEST_F(ProcessPoolTest, GivesNoneAfterOneThatWasOfNoUse) {
  Make({Handler("a", 2)});
  ASSERT_TRUE(Await("warm_ready", 2));
  {
    ProcessPool::Starting starting(&*pool_);
    const auto taken = starting.Take(IsOf("a"));
    ASSERT_TRUE(taken.process);
    starting.Report(taken.handler, false);
  }
  EXPECT_FALSE(Take("a").process);
  EXPECT_EQ(Count("warm_failed"), 1U);
}

TEST_F(ProcessPoolTest, LetsGoOfThoseOfAnotherBuild) {
  Make({Handler("a", 2)});
  ASSERT_TRUE(Await("warm_ready", 2));
  {
    // Whoever starts a sandbox has the pool look, which asks for the build and so waits.
    ProcessPool::Starting starting(&*pool_);
    const std::lock_guard lock(mutex_);
    build_ = "two";
    const auto is_two = [](const PooledProcess& one) -> std::string_view {
      return one.build == "two" ? "" : "its build";
    };
    EXPECT_EQ(starting.Take(is_two).missing, "its build");
  }
  ASSERT_TRUE(pool_->AwaitForTest(
      [&](const auto& counts) { return boots_ == 4 && CountOf(counts, "warm_ready") == 2; },
      kPoolLimit));
  EXPECT_EQ(Count("warm_failed"), 0U);
  EXPECT_EQ(context_.Alive(), 2U);
  EXPECT_TRUE(Take("a").process);
}

TEST_F(ProcessPoolTest, LeavesNothing) {
  Make({Handler("a", 3)});
  ASSERT_TRUE(Await("warm_ready", 3));
  pool_->Leave();
  for (const auto& process : context_.spawned) {
    EXPECT_TRUE(process->Wait(kPoolLimit));
  }
  EXPECT_THAT(Folders(), IsEmpty());
  EXPECT_FALSE(Take("a").process);
  pool_.reset();
  EXPECT_EQ(boots_, 3);
  EXPECT_THAT(context_.log, IsEmpty());
}

TEST_F(ProcessPoolTest, LeavesWhatWasTaken) {
  Make({Handler("a", 1)});
  ASSERT_TRUE(Await("warm_ready", 1));
  const auto taken = Take("a");
  ASSERT_TRUE(taken.process);
  pool_.reset();
  EXPECT_FALSE(taken.process->process->Ended());
}

TEST_F(ProcessPoolTest, NotesForTheNextEngineWhatIsNobodys) {
  Make({Handler("a", 1)});
  ASSERT_TRUE(Await("warm_ready", 1));
  const auto taken = Take("a");
  ASSERT_TRUE(taken.process);
  EXPECT_THAT(NamesIn(taken.process->folder), ElementsAre("process"));
  ASSERT_TRUE(HandOver(*taken.process));
  ASSERT_TRUE(HandOver(*taken.process));
  EXPECT_THAT(NamesIn(taken.process->folder), IsEmpty());
}

TEST_F(ProcessPoolTest, DiscardsWithAllThatItHas) {
  Make({Handler("a", 1)});
  ASSERT_TRUE(Await("warm_ready", 1));
  const auto taken = Take("a");
  ASSERT_TRUE(taken.process);
  Discard(*taken.process);
  EXPECT_TRUE(taken.process->process->Ended());
  EXPECT_FALSE(Exists(taken.process->folder));
}

TEST_F(ProcessPoolTest, EndsOneThatIsBooting) {
  std::latch spawned_one(1);
  std::latch may_go_on(1);
  const std::vector<PoolHandler> handlers = {Handler("a", 1)};
  PoolMaker maker = Maker(handlers);
  maker.make = [&](size_t handler, const std::string& folder, const PoolMaker::Spawned& spawned) {
    auto one = MakeOne(handlers.at(handler).name, folder, spawned);
    spawned_one.count_down();
    may_go_on.wait();
    return one;
  };
  pool_.emplace(context_, handlers, std::move(maker), times_);
  spawned_one.wait();
  EXPECT_EQ(Count("warm_booting"), 1U);
  pool_->Leave();
  EXPECT_TRUE(context_.spawned.front()->Wait(kPoolLimit));
  may_go_on.count_down();
  pool_.reset();
  EXPECT_EQ(context_.Alive(), 0U);
}

TEST_F(ProcessPoolTest, HasABoundForAllHandlers) {
  fails_ = true;
  std::vector<PoolHandler> handlers;
  for (int i = 0; i < 6; ++i) {
    handlers.push_back(Handler(Format("h{}", i), 64));
  }
  Make(std::move(handlers));
  EXPECT_EQ(Count("warm_wanted"), kMaxPooled);
  pool_.reset();
  EXPECT_THAT(context_.log, Contains(HasSubstr("handler 'h5': 0 pre-booted sandboxes instead of")));
}

}  // namespace
}  // namespace gantry
