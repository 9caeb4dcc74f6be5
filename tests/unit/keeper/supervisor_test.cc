// SPDX-License-Identifier: Apache-2.0
//
// The engine's starts, crashes and upgrades.
#include <sys/stat.h>

#include <filesystem>

#include <gantry/toolkit/descriptors/unix_socket.h>

#include "tests/unit/keeper/node.h"

namespace gantry::keeper {
namespace {

class SupervisorTest : public KeeperTest {
 protected:
  void SetUp() override { StartKeeper(); }

  /// Asks for an upgrade without waiting for its end.
  void BeginUpgrade(const std::string& path) {
    upgrade_ = std::make_unique<link::Channel>(
        loop_, *ConnectUnix(dir_.path() + "/keeper.sock"),
        [this](link::Message message) { answer_ = std::move(message); }, [](const Error&) {});
    ASSERT_TRUE(upgrade_->Send(link::Upgrade{path, no_fallback_}));
  }

  /// Until the engine has ended and none is started.
  bool Waits() {
    return Until([&] {
      return Status().engine_state == static_cast<uint32_t>(link::EngineState::kWaiting);
    });
  }

  bool no_fallback_ = false;
  std::unique_ptr<link::Channel> upgrade_;
  std::optional<link::Message> answer_;
};

TEST_F(SupervisorTest, StartsNoEngineBeforeTheFirstAnnounce) {
  Settle();
  EXPECT_TRUE(engines.empty());
  EXPECT_EQ(Status().engine_state, static_cast<uint32_t>(link::EngineState::kNever));
  Announce("c1");
  Engine();
  EXPECT_EQ(Status().engine_state, static_cast<uint32_t>(link::EngineState::kStarting));
  ReadyEngine();
  EXPECT_EQ(Status().engine_state, static_cast<uint32_t>(link::EngineState::kUp));
}

TEST_F(SupervisorTest, StartsAnotherForEveryCrash) {
  Announce("c1");
  for (size_t i = 0; i < 4; ++i) {
    ReadyEngine(i).Crash();
  }
  EXPECT_EQ(ReadyEngine(4).All<link::Welcome>().front().generation, 5U);
}

TEST_F(SupervisorTest, WaitsLongerAndLongerWhenItCrashesAtOnce) {
  loop_.clock.Stop();
  Announce("c1");
  // The first time at once.
  Engine(0).Crash();
  uint64_t starts = 2;
  for (const auto pause : {50ms, 100ms, 200ms, 400ms, 800ms, 1600ms, 3200ms, 5000ms, 5000ms}) {
    Engine(starts - 1).Crash();
    ASSERT_TRUE(Waits());
    loop_.Advance(pause - 1ns);
    EXPECT_EQ(Status().engine_starts, starts) << "sooner than after " << pause;
    loop_.Advance(1ns);
    EXPECT_EQ(Status().engine_starts, ++starts) << "not after " << pause;
  }
}

TEST_F(SupervisorTest, WaitsNeverLongAfterOneThatHasWorked) {
  loop_.clock.Stop();
  Announce("c1");
  ReadyEngine(0).Crash();
  uint64_t starts = 2;
  for (const auto pause : {50ms, 100ms, 200ms, 400ms, 400ms}) {
    ReadyEngine(starts - 1).Crash();
    ASSERT_TRUE(Waits());
    loop_.Advance(pause - 1ns);
    EXPECT_EQ(Status().engine_starts, starts) << "sooner than after " << pause;
    loop_.Advance(1ns);
    EXPECT_EQ(Status().engine_starts, ++starts) << "not after " << pause;
  }
}

TEST_F(SupervisorTest, StartsAtOnceWhatWasHealthyForASecond) {
  loop_.clock.Stop();
  Announce("c1");
  for (size_t i = 0; i < 3; ++i) {
    FakeEngine& engine = ReadyEngine(i);
    loop_.Advance(1s);
    engine.Crash();
  }
  ReadyEngine(3);
}

TEST_F(SupervisorTest, CountsTheTimesWithoutAnEngineInCharge) {
  loop_.clock.Stop();
  // While there is an engine, time goes in steps in which it answers.
  loop_.Advance(1h);
  Announce("c1");
  ReadyEngine(0);
  ASSERT_TRUE(Until(
      [&] { return Status().engine_state == static_cast<uint32_t>(link::EngineState::kUp); }));
  loop_.Advance(1s);
  EXPECT_EQ(Status().engine_gaps, 0U) << "before the first there was none to miss";
  engines[0]->Crash();
  Engine(1);
  loop_.Advance(250ms);
  EXPECT_EQ(Status().engine_gaps, 0U) << "it is not over";
  ReadyEngine(1);
  ASSERT_TRUE(Until([&] { return Status().engine_gaps == 1; }));
  EXPECT_EQ(Status().engine_gap_ns, std::chrono::nanoseconds(250ms).count());
  loop_.Advance(1s);
  EXPECT_EQ(Status().engine_gap_ns, std::chrono::nanoseconds(250ms).count());
}

TEST_F(SupervisorTest, SaysInBriefHowManyInstancesThereAre) {
  Announce("c1");
  Announce("c2");
  const auto brief = *Ask<link::KeeperStatus>(link::Query{.brief = true});
  EXPECT_EQ(brief.instance_count, 2U);
  EXPECT_TRUE(brief.instances.empty());
  EXPECT_EQ(brief.keeper_pid, Status().keeper_pid);
  EXPECT_EQ(Status().instances.size(), 2U);
}

TEST_F(SupervisorTest, EndsAnEngineThatDoesNotSayHello) {
  loop_.clock.Stop();
  Announce("c1");
  Engine(0);
  loop_.Advance(30s - 1ns);
  EXPECT_EQ(Status().engine_state, static_cast<uint32_t>(link::EngineState::kStarting));
  loop_.Advance(1ns);
  Engine(1);
}

TEST_F(SupervisorTest, TellsTheNextEngineEverything) {
  Announce("c1");
  Announce("c2");
  FakeEngine& first = ReadyEngine();
  const auto added = first.All<link::InstanceAdded>();
  ASSERT_EQ(added.size(), 2U);
  link::Protect protect;
  protect.instance = added[0].number;
  protect.last_resort.mounts = {"/m"};
  ASSERT_TRUE(first.channel->Send(protect));
  ASSERT_TRUE(first.channel->Send(link::Forget{added[1].number, 42, 7, 99}));
  ASSERT_TRUE(Until([&] { return Status().tombstones == 1; }));
  first.Crash();
  FakeEngine& second = ReadyEngine(1);
  const auto again = second.All<link::InstanceAdded>();
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(again[0].announce.id, "c1");
  EXPECT_FALSE(again[0].forgotten);
  EXPECT_TRUE(again[1].forgotten);
  EXPECT_EQ(again[1].status, 7U);
  EXPECT_EQ(second.All<link::Protect>().front().last_resort.mounts.front(), "/m");
  EXPECT_TRUE(second.All<link::Welcome>().front().previous_wait_status.has_value());
}

TEST_F(SupervisorTest, LosesNothingThatADeadEngineHasSaid) {
  Announce("c1");
  FakeEngine& engine = ReadyEngine();
  const uint64_t number = engine.All<link::InstanceAdded>().front().number;
  const pid_t pid = Status().engine_pid;
  // Sent and dead before the keeper looks.
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(engine.channel->Send(link::Drop{"x"}));
  }
  ASSERT_TRUE(engine.channel->Send(link::Forget{number, 1, 2, 3}));
  ASSERT_EQ(engine.channel->queued_bytes(), 0U);
  ASSERT_EQ(kill(pid, SIGKILL), 0);
  ReadyEngine(1);
  EXPECT_EQ(Status().tombstones, 1U);
}

TEST_F(SupervisorTest, EndsAnEngineOfAnotherVersion) {
  Announce("c1");
  ASSERT_TRUE(Engine().channel->Send(link::Hello{link::kProtocolVersion + 1, 1}));
  ASSERT_TRUE(Engine(1).channel->Send(link::Hello{}));
  ReadyEngine(2);
}

constexpr uint64_t kSoon = 200;
constexpr std::chrono::milliseconds kSoonTime{kSoon};

TEST_F(SupervisorTest, EndsAnEngineThatHangs) {
  loop_.clock.Stop();
  Announce("c1");
  ASSERT_TRUE(Engine().channel->Send(link::Hello{link::kProtocolVersion, 1, kSoon}));
  ASSERT_TRUE(Until([&] { return engines[0]->Count<link::Ping>() == 1; }));
  // It does not answer.
  loop_.Advance(kSoonTime - 1ns);
  EXPECT_EQ(Status().engine_hangs, 0U);
  loop_.Advance(1ns);
  EXPECT_EQ(Status().engine_hangs, 1U);
  ReadyEngine(1);
}

TEST_F(SupervisorTest, LeavesOneThatAnswers) {
  loop_.clock.Stop();
  Announce("c1");
  FakeEngine& engine = Engine();
  ASSERT_TRUE(engine.channel->Send(link::Hello{link::kProtocolVersion, 1, kSoon}));
  for (size_t i = 1; i <= 6; ++i) {
    ASSERT_TRUE(Until([&] { return engine.Count<link::Ping>() == i; }));
    ASSERT_TRUE(engine.channel->Send(link::Pong{engine.All<link::Ping>().back().number}));
    loop_.Advance(kSoonTime / 2);
  }
  EXPECT_EQ(Status().engine_hangs, 0U);
  EXPECT_EQ(engines.size(), 1U);
}

TEST_F(SupervisorTest, LeavesOneThatHangsWhereItIsAskedTo) {
  loop_.clock.Stop();
  Announce("c1");
  FakeEngine& engine = Engine();
  ASSERT_TRUE(engine.channel->Send(link::Hello{link::kProtocolVersion, 1, kSoon, true}));
  ASSERT_TRUE(Until([&] { return engine.Count<link::Ping>() == 1; }));
  loop_.Advance(kSoonTime);
  EXPECT_EQ(Status().engine_hangs, 1U);
  Announce("c2");
  EXPECT_TRUE(Until([&] { return engine.Count<link::InstanceAdded>() == 2; }));
  EXPECT_EQ(engines.size(), 1U);
}

TEST_F(SupervisorTest, AsksNoEngineThatDoesNotAskForIt) {
  Announce("c1");
  FakeEngine& engine = ReadyEngine();
  Settle();
  EXPECT_EQ(engine.Count<link::Ping>(), 0U);
}

TEST_F(SupervisorTest, UpgradeSwitchesWhenTheNewOneIsReady) {
  Announce("c1");
  ReadyEngine(0);
  const pid_t old = Status().engine_pid;
  BeginUpgrade("");
  FakeEngine& next = Engine(1);
  EXPECT_EQ(Status().engine_pid, old);
  ASSERT_TRUE(next.channel->Send(link::Hello{link::kProtocolVersion}));
  ASSERT_TRUE(Until([&] { return answer_.has_value(); }));
  ASSERT_EQ(answer_->type, link::Type::kUpgraded);
  EXPECT_EQ(answer_->As<link::Upgraded>()->engine_pid, Status().engine_pid);
  EXPECT_NE(Status().engine_pid, old);
  EXPECT_NE(kill(old, 0), 0);
  EXPECT_EQ(next.Count<link::InstanceAdded>(), 1U);
}

TEST_F(SupervisorTest, AFailedUpgradeLeavesTheOldOneInCharge) {
  Announce("c1");
  FakeEngine& first = ReadyEngine(0);
  const pid_t old = Status().engine_pid;
  BeginUpgrade("");
  Engine(1).Crash();
  ASSERT_TRUE(Until([&] { return answer_.has_value(); }));
  EXPECT_EQ(answer_->type, link::Type::kFailed);
  EXPECT_EQ(Status().engine_pid, old);
  Announce("c2");
  EXPECT_TRUE(Until([&] { return first.Count<link::InstanceAdded>() == 2; }));
}

TEST_F(SupervisorTest, TellsTheNewEngineWhatThereIsBeforeItMustDecide) {
  for (int i = 0; i < 300; ++i) {
    Announce("c" + std::to_string(i));
  }
  ReadyEngine(0);
  BeginUpgrade("");
  FakeEngine& next = Engine(1);
  ASSERT_TRUE(next.channel->Send(link::Inquire{}));
  ASSERT_TRUE(Until([&] { return next.Count<link::Inventory>() == 2; }));
  const auto parts = next.All<link::Inventory>();
  EXPECT_TRUE(parts[0].more);
  EXPECT_FALSE(parts[1].more);
  EXPECT_EQ(parts[0].bundles.size() + parts[1].bundles.size(), 300U);
  EXPECT_EQ(next.Count<link::InstanceAdded>(), 0U);
  ASSERT_TRUE(next.channel->Send(link::Hello{link::kProtocolVersion}));
  ASSERT_TRUE(Until([&] { return answer_.has_value(); }));
  EXPECT_EQ(answer_->type, link::Type::kUpgraded);
}

TEST_F(SupervisorTest, TellsWhyTheNewEngineRefuses) {
  Announce("c1");
  ReadyEngine(0);
  const pid_t old = Status().engine_pid;
  BeginUpgrade("");
  FakeEngine& next = Engine(1);
  ASSERT_TRUE(next.channel->Send(link::Refuse{"backend 'x' is missing"}));
  next.Crash();
  ASSERT_TRUE(Until([&] { return answer_.has_value(); }));
  const auto failed = answer_->As<link::Failed>();
  ASSERT_TRUE(failed);
  EXPECT_THAT(failed->message,
              testing::HasSubstr("the new engine refuses: backend 'x' is missing"));
  EXPECT_EQ(Status().engine_pid, old);
}

TEST_F(SupervisorTest, AnUpgradeToNothingFailsAtOnce) {
  const auto answer = Ask<link::Upgraded>(link::Upgrade{"/no/such/engine"});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kFailedPrecondition);
}

TEST_F(SupervisorTest, ExecutesNothingThatOthersMayChange) {
  const std::string other = dir_.path() + "/other";
  std::filesystem::copy_file(GANTRY_FAKE_ENGINE, other);
  ASSERT_EQ(chmod(other.c_str(), 0757), 0);
  Announce("c1");
  ReadyEngine(0);
  const auto refused = Ask<link::Upgraded>(link::Upgrade{other});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("others may write in '" + other + "'"));
  const auto keeper = Ask<link::KeeperUpgraded>(link::UpgradeKeeper{other});
  ASSERT_FALSE(keeper);
  EXPECT_THAT(keeper.error().message, testing::HasSubstr("others may write in '" + other + "'"));
  EXPECT_EQ(engines.size(), 1U);
}

TEST_F(SupervisorTest, GoesBackWhenTheUpgradedEngineCrashes) {
  const std::string other = dir_.path() + "/other";
  ASSERT_EQ(symlink(GANTRY_FAKE_ENGINE, other.c_str()), 0);
  Announce("c1");
  ReadyEngine(0);
  BeginUpgrade(other);
  ReadyEngine(1);
  ASSERT_TRUE(Until([&] { return answer_.has_value(); }));
  EXPECT_EQ(answer_->As<link::Upgraded>()->fallback, GANTRY_FAKE_ENGINE);
  EXPECT_EQ(Status().engine_path, other);
  EXPECT_EQ(Status().fell_back_from, "");
  engines[1]->Crash();
  ReadyEngine(2);
  EXPECT_EQ(Status().engine_path, GANTRY_FAKE_ENGINE);
  EXPECT_EQ(Status().fell_back_from, other);
  EXPECT_NE(Status().fell_back_wait_status, 0);
}

TEST_F(SupervisorTest, KeepsAnUpgradedEngineThatCrashesWhereItIsAskedTo) {
  const std::string other = dir_.path() + "/other";
  ASSERT_EQ(symlink(GANTRY_FAKE_ENGINE, other.c_str()), 0);
  Announce("c1");
  ReadyEngine(0);
  no_fallback_ = true;
  BeginUpgrade(other);
  ReadyEngine(1);
  ASSERT_TRUE(Until([&] { return answer_.has_value(); }));
  EXPECT_EQ(answer_->As<link::Upgraded>()->fallback, "");
  engines[1]->Crash();
  ReadyEngine(2);
  EXPECT_EQ(Status().engine_path, other);
  EXPECT_EQ(Status().fell_back_from, "");
}

}  // namespace
}  // namespace gantry::keeper
