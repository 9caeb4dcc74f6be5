// SPDX-License-Identifier: Apache-2.0
//
// What is lent to a sandbox. Its calls come from workers; so they do here, while
// the test's thread turns the loop.
#include "core/backend/context.h"

#include <fcntl.h>

#include <future>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/cgroup/cgroup.h>

#include "core/async/worker_pool.h"
#include "tests/unit/keeper_client/engine_test.h"

namespace gantry::backend {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class ContextTest : public keeper_client::EngineTest {
 protected:
  ContextTest() {
    options_.backend = "fake";
    options_.ns = *Namespace::Parse("default");
    options_.id = *SandboxId::Parse("pod");
    options_.owner = link::NameOwner::Sandbox(7);
    options_.group = "unix:///s/1";
    options_.counters = &counters_;
    options_.save = [this](std::string blob) -> Status {
      saved_ = std::move(blob);
      return {};
    };
    Make();
  }

  ~ContextTest() override { EXPECT_TRUE(test::Settle(loop_, pool_)); }

  /// A context of a new engine.
  void Make() {
    context_ =
        std::make_unique<Context>(Services{loop_, pool_, *link_, *processes_, cgroups_}, options_);
  }

  /// Calls `function` on a worker.
  template <class F>
  auto OnWorker(F function) {
    auto answer = std::async(std::launch::async, std::move(function));
    EXPECT_TRUE(Until(
        [&] { return answer.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }));
    return answer.get();
  }

  static UniqueFd Null() { return UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC)); }

  async::WorkerPool pool_{loop_, 2, 16};
  cgroup::CgroupHierarchy cgroups_;
  Counters counters_;
  ContextOptions options_;
  std::string saved_;
  std::unique_ptr<Context> context_;
};

TEST_F(ContextTest, SpawnsUnderATagOfItsOwn) {
  const auto process = OnWorker([this] { return context_->Spawn(Request("/bin/x", "create/c1")); });
  ASSERT_TRUE(process) << process.error().message;
  ASSERT_EQ(keeper_.spawns.size(), 1U);
  EXPECT_EQ(keeper_.spawns[0].name, "7/sandbox/create/c1");
  EXPECT_EQ(keeper_.spawns[0].group, "unix:///s/1");
  EXPECT_EQ((*process)->pid().value, keeper_.named["7/sandbox/create/c1"].pid);
}

TEST_F(ContextTest, KeepsNothingThatIsBornAfterTheEnd) {
  keeper_.when_spawned = [this] { context_->End(); };
  const auto process = OnWorker([this] { return context_->Spawn(Request("/bin/x")); });
  ASSERT_FALSE(process);
  EXPECT_EQ(process.error().code, Code::kNotFound);
  ASSERT_TRUE(Until([this] { return !keeper_.acknowledged.empty(); }));
  EXPECT_TRUE(context_->Running().empty());
  EXPECT_EQ(OnWorker([this] { return context_->Spawn(Request("/bin/x")); }).error().code,
            Code::kNotFound);
  EXPECT_EQ(keeper_.spawns.size(), 1U);
}

TEST_F(ContextTest, SpawnsWithoutATagLeaveNoName) {
  ASSERT_TRUE(OnWorker([this] { return context_->Spawn(Request("/bin/x")); }));
  EXPECT_EQ(keeper_.spawns[0].name, "");
}

TEST_F(ContextTest, FindsWhatAnEarlierEngineSpawned) {
  const auto process = OnWorker([this] { return context_->Spawn(Request("/bin/x", "vmm")); });
  ASSERT_TRUE(process);
  Connect();
  Make();
  const auto found = OnWorker([this] { return context_->FindSpawned("vmm"); });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->pid(), (*process)->pid());
  EXPECT_FALSE(OnWorker([this] { return context_->FindSpawned("other"); }));
}

TEST_F(ContextTest, AdoptsAndRecovers) {
  keeper_.AddOrphan(50, 5);
  const auto adopted = OnWorker([this] { return context_->Adopt(HostPid{50}); });
  ASSERT_TRUE(adopted);
  EXPECT_EQ((*adopted)->start_time(), 5U);
  EXPECT_TRUE(OnWorker([this] { return context_->Recover(HostPid{50}, 5); }));
  const auto gone = OnWorker([this] { return context_->Recover(HostPid{50}, 6); });
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Code::kNotFound);
}

TEST_F(ContextTest, AdoptsUnderATagThatIsItsSandboxesOwn) {
  keeper_.AddOrphan(50, 5);
  const auto adopted = OnWorker([this] { return context_->AdoptAs(HostPid{50}, "zygote/1"); });
  ASSERT_TRUE(adopted) << adopted.error().message;
  EXPECT_EQ(OnWorker([this] { return context_->AdoptAs(HostPid{50}, ""); }).error().code,
            Code::kInvalidArgument);
  Connect();
  Make();
  const auto found = OnWorker([this] { return context_->FindSpawned("zygote/1"); });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->pid(), HostPid{50});
  EXPECT_FALSE(keeper_.named.contains("zygote/1")) << "without its sandbox";
}

TEST_F(ContextTest, TellsWhatIsLeftOfTheCallOnThisThread) {
  using std::chrono::minutes;
  constexpr auto kNoLimit = std::chrono::milliseconds::max();
  EXPECT_EQ(context_->TimeLeft(), kNoLimit);
  {
    const CallDeadline outer(CallDeadline::Clock::now() + minutes(30));
    EXPECT_GT(context_->TimeLeft(), minutes(10));
    EXPECT_LE(context_->TimeLeft(), minutes(30));
    EXPECT_EQ(OnWorker([this] { return context_->TimeLeft(); }), kNoLimit);
    {
      const CallDeadline passed(CallDeadline::Clock::now() - minutes(1));
      EXPECT_EQ(context_->TimeLeft().count(), 0);
    }
    EXPECT_GT(context_->TimeLeft(), minutes(10));
  }
  EXPECT_EQ(context_->TimeLeft(), kNoLimit);
}

TEST_F(ContextTest, StoresDescriptorsUnderNamesOfItsOwn) {
  const UniqueFd null = Null();
  ASSERT_TRUE(OnWorker([&] { return context_->Store("agent", null); }));
  EXPECT_TRUE(keeper_.stored.contains("7/sandbox/backend/agent"));
  const auto taken = OnWorker([this] { return context_->Take("agent"); });
  ASSERT_TRUE(taken);
  EXPECT_TRUE(*taken);
  OnWorker([this] {
    context_->Drop("agent");
    return 0;
  });
  EXPECT_TRUE(Until([this] { return keeper_.stored.empty(); }));
  EXPECT_EQ(OnWorker([this] { return context_->Take("agent"); }).error().code, Code::kNotFound);
}

TEST_F(ContextTest, StoresSeveralDescriptorsAtOnce) {
  const UniqueFd null = Null();
  const std::vector<NamedFd> all{{"a", null}, {"b", null}, {"c", null}};
  ASSERT_TRUE(OnWorker([&] { return context_->StoreAll(all); }));
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_TRUE(OnWorker([&] { return context_->Take(name); })) << name;
  }
}

TEST_F(ContextTest, StoresNothingWhereOneHasNoName) {
  const UniqueFd null = Null();
  const std::vector<NamedFd> all{{"a", null}, {"", null}};
  EXPECT_EQ(context_->StoreAll(all).error().code, Code::kInvalidArgument);
  const std::vector<NamedFd> many(17, NamedFd{"a", null});
  EXPECT_EQ(context_->StoreAll(many).error().code, Code::kInvalidArgument);
  EXPECT_TRUE(keeper_.stored.empty());
}

TEST_F(ContextTest, RefusesNamesThatAreNone) {
  const UniqueFd null = Null();
  EXPECT_EQ(context_->Store("", null).error().code, Code::kInvalidArgument);
  EXPECT_EQ(context_->Store(std::string(65, 'x'), null).error().code, Code::kInvalidArgument);
  EXPECT_EQ(context_->Take("").error().code, Code::kInvalidArgument);
  EXPECT_FALSE(context_->Store("x", UniqueFd()));
}

TEST_F(ContextTest, DropsAllThatItStored) {
  const UniqueFd null = Null();
  ASSERT_TRUE(OnWorker([&] { return context_->Store("a", null); }));
  ASSERT_TRUE(OnWorker([&] { return context_->Store("b", null); }));
  context_->DropAll();
  EXPECT_TRUE(Until([this] { return keeper_.stored.empty(); }));
}

TEST_F(ContextTest, DropsAllThatItTookAfterARestart) {
  const UniqueFd null = Null();
  ASSERT_TRUE(OnWorker([&] { return context_->Store("a", null); }));
  Connect();
  Make();
  ASSERT_TRUE(OnWorker([this] { return context_->Take("a"); }));
  context_->DropAll();
  EXPECT_TRUE(Until([this] { return keeper_.stored.empty(); }));
}

TEST_F(ContextTest, SavesUpToALimit) {
  EXPECT_TRUE(context_->Save("state"));
  EXPECT_EQ(saved_, "state");
  const Status too_long = context_->Save(std::string((64 << 10) + 1, 'x'));
  ASSERT_FALSE(too_long);
  EXPECT_EQ(too_long.error().code, Code::kInvalidArgument);
  EXPECT_EQ(saved_, "state");
}

TEST_F(ContextTest, CountsByBackend) {
  SandboxContext& context = *context_;
  context.Count("restarts");
  context.Count("restarts", 2);
  EXPECT_THAT(counters_.All(), ElementsAre(Pair("fake.restarts", 3U)));
}

TEST_F(ContextTest, LogsWhoseLineItIs) {
  std::string line;
  log::SetSinkForTest([&](std::string_view text) { line = text; });
  context_->Log(LogLevel::kWarning, "the agent is silent");
  log::SetSinkForTest([](std::string_view) {});
  EXPECT_THAT(line, HasSubstr("the agent is silent"));
  EXPECT_THAT(line, HasSubstr("backend=fake"));
  EXPECT_THAT(line, HasSubstr("id=pod"));
}

}  // namespace
}  // namespace gantry::backend
