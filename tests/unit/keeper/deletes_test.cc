// SPDX-License-Identifier: Apache-2.0
//
// containerd's `delete`, with and without an engine.
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/pidfd.h>

#include "tests/unit/keeper/node.h"

namespace gantry::keeper {
namespace {

class DeletesTest : public KeeperTest {
 protected:
  KeeperOptions MakeOptions() override {
    KeeperOptions options = KeeperTest::MakeOptions();
    options.delete_timing = timing_;
    return options;
  }

  /// Announces c1 and gives it a sleeping init, for which the keeper has a last resort.
  link::Spawned Running() {
    StartKeeper();
    address_ = Announce("c1");
    FakeEngine& engine = ReadyEngine();
    const link::Spawned init = Shell(engine, "exec sleep 60");
    link::Protect protect;
    protect.instance = engine.All<link::InstanceAdded>().front().number;
    protect.last_resort.init = {init.pid, init.start_time};
    EXPECT_TRUE(engine.channel->Send(protect));
    Status();
    return init;
  }

  bool SocketIsThere() const { return Exists(address_.substr(7)); }

  Deletes::Timing timing_{10s, 10s, 5ms, 5s};
  std::string address_;
};

TEST_F(DeletesTest, TheEngineAnswers) {
  Running();
  FakeEngine& engine = *engines[0];
  std::optional<link::Message> answer;
  link::Channel shim(
      loop_, *ConnectUnix(dir_.path() + "/keeper.sock"),
      [&](link::Message message) { answer = std::move(message); }, [](const Error&) {});
  ASSERT_TRUE(shim.Send(DeleteOf("c1")));
  ASSERT_TRUE(Until([&] { return engine.Count<link::DeleteCall>() == 1; }));
  EXPECT_FALSE(answer);
  const link::DeleteCall call = engine.All<link::DeleteCall>().front();
  ASSERT_TRUE(engine.channel->Send(link::DeleteDone{call.tag, 42, 3, 99, 0, ""}));
  ASSERT_TRUE(Until([&] { return answer.has_value(); }));
  const auto deleted = answer->As<link::Deleted>();
  ASSERT_TRUE(deleted);
  EXPECT_TRUE(deleted->known);
  EXPECT_EQ(deleted->pid, 42U);
  EXPECT_EQ(deleted->status, 3U);
  EXPECT_EQ(deleted->exited_at_ns, 99);
  EXPECT_FALSE(SocketIsThere());
  EXPECT_TRUE(Until([&] { return engine.Count<link::InstanceRemoved>() == 1; }));
}

TEST_F(DeletesTest, ASilentEngineIsNotWaitedFor) {
  timing_.engine_answers = 10ms;
  const link::Spawned init = Running();
  const auto deleted = Ask<link::Deleted>(DeleteOf("c1"));
  ASSERT_TRUE(deleted);
  EXPECT_TRUE(deleted->known);
  EXPECT_EQ(deleted->pid, static_cast<uint32_t>(init.pid));
  EXPECT_EQ(deleted->status, 137U);
  EXPECT_FALSE(Identify({init.pid}));
  EXPECT_FALSE(SocketIsThere());
}

/// containerd waits for five seconds. The end of what is killed is an event: it costs no time.
TEST_F(DeletesTest, ASilentEngineLeavesTimeToEndAll) {
  timing_ = Deletes::Timing();
  EXPECT_LT(timing_.engine_answers + timing_.killing, 5s);
  Running();
  loop_.clock.Stop();
  std::optional<link::Message> answer;
  link::Channel shim(
      loop_, *ConnectUnix(dir_.path() + "/keeper.sock"),
      [&](link::Message message) { answer = std::move(message); }, [](const Error&) {});
  ASSERT_TRUE(shim.Send(DeleteOf("c1")));
  ASSERT_TRUE(Until([&] { return engines[0]->Count<link::DeleteCall>() == 1; }));
  loop_.Advance(timing_.engine_answers - 1ns);
  EXPECT_FALSE(answer);
  EXPECT_TRUE(SocketIsThere());
  loop_.Advance(1ns);
  ASSERT_TRUE(Until([&] { return answer.has_value(); }));
  const auto deleted = answer->As<link::Deleted>();
  ASSERT_TRUE(deleted);
  EXPECT_EQ(deleted->status, 137U);
}

TEST_F(DeletesTest, AnEngineThatDoesNotStartIsNotWaitedFor) {
  timing_.engine_starts = 10ms;
  const link::Spawned init = Running();
  engines[0]->Crash();
  ASSERT_TRUE(Until(
      [&] { return Status().engine_state != static_cast<uint32_t>(link::EngineState::kUp); }));
  const auto deleted = Ask<link::Deleted>(DeleteOf("c1"));
  ASSERT_TRUE(deleted);
  EXPECT_EQ(deleted->pid, static_cast<uint32_t>(init.pid));
  EXPECT_EQ(deleted->status, 137U);
  EXPECT_FALSE(Identify({init.pid}));
}

TEST_F(DeletesTest, WithoutAnEngineTheLastResortsCommandIsRunOnce) {
  timing_.engine_starts = 10ms;
  const link::Spawned init = Running();
  FakeEngine& engine = *engines[0];
  const std::string log = dir_.path() + "/log";
  link::Protect protect;
  protect.instance = engine.All<link::InstanceAdded>().front().number;
  protect.last_resort.init = {init.pid, init.start_time};
  protect.last_resort.cleanup = link::Command{{"/bin/sh", "-c", "umask >>" + log}, {}, dir_.path()};
  ASSERT_TRUE(engine.channel->Send(protect));
  Status();
  engine.Crash();
  ASSERT_TRUE(Until(
      [&] { return Status().engine_state != static_cast<uint32_t>(link::EngineState::kUp); }));
  const auto deleted = Ask<link::Deleted>(DeleteOf("c1"));
  ASSERT_TRUE(deleted);
  EXPECT_EQ(deleted->status, 137U);
  EXPECT_EQ(ReadFile(log, 100).value_or(""), "0022\n") << "as what an engine starts";
}

TEST_F(DeletesTest, AnEngineThatComesInTimeIsAsked) {
  Running();
  engines[0]->Crash();
  Engine(1);
  std::optional<link::Message> answer;
  link::Channel shim(
      loop_, *ConnectUnix(dir_.path() + "/keeper.sock"),
      [&](link::Message message) { answer = std::move(message); }, [](const Error&) {});
  ASSERT_TRUE(shim.Send(DeleteOf("c1")));
  Settle();
  FakeEngine& engine = ReadyEngine(1);
  ASSERT_TRUE(Until([&] { return engine.Count<link::DeleteCall>() == 1; }));
  ASSERT_TRUE(engine.channel->Send(
      link::DeleteDone{engine.All<link::DeleteCall>().front().tag, 1, 0, 5, 0, ""}));
  ASSERT_TRUE(Until([&] { return answer.has_value(); }));
  EXPECT_EQ(answer->As<link::Deleted>()->status, 0U);
}

TEST_F(DeletesTest, AnEngineThatCannotIsHelped) {
  const link::Spawned init = Running();
  FakeEngine& engine = *engines[0];
  std::optional<link::Message> answer;
  link::Channel shim(
      loop_, *ConnectUnix(dir_.path() + "/keeper.sock"),
      [&](link::Message message) { answer = std::move(message); }, [](const Error&) {});
  ASSERT_TRUE(shim.Send(DeleteOf("c1")));
  ASSERT_TRUE(Until([&] { return engine.Count<link::DeleteCall>() == 1; }));
  ASSERT_TRUE(engine.channel->Send(
      link::DeleteDone{engine.All<link::DeleteCall>().front().tag, 0, 0, 0, 13, "broken"}));
  ASSERT_TRUE(Until([&] { return answer.has_value(); }));
  EXPECT_EQ(answer->As<link::Deleted>()->pid, static_cast<uint32_t>(init.pid));
  EXPECT_FALSE(Identify({init.pid}));
}

TEST_F(DeletesTest, TheTrueStatusIsKnownEvenWhenItWasAcknowledged) {
  timing_.engine_answers = 10ms;
  StartKeeper();
  Announce("c1");
  FakeEngine& engine = ReadyEngine();
  const link::Spawned init = Shell(engine, "exit 5");
  ASSERT_TRUE(Until([&] { return engine.Count<link::Exit>() == 1; }));
  link::Protect protect;
  protect.instance = engine.All<link::InstanceAdded>().front().number;
  protect.last_resort.init = {init.pid, init.start_time};
  ASSERT_TRUE(engine.channel->Send(protect));
  ASSERT_TRUE(engine.channel->Send(link::ExitAck{init.pid, init.start_time}));
  ASSERT_TRUE(Until([&] { return Status().exits_kept == 0; }));
  const auto deleted = Ask<link::Deleted>(DeleteOf("c1"));
  ASSERT_TRUE(deleted);
  EXPECT_EQ(deleted->pid, static_cast<uint32_t>(init.pid));
  EXPECT_EQ(deleted->status, 5U);
}

TEST_F(DeletesTest, ATombstoneAnswersWithoutTheEngine) {
  Running();
  FakeEngine& engine = *engines[0];
  const uint64_t number = engine.All<link::InstanceAdded>().front().number;
  ASSERT_TRUE(engine.channel->Send(link::Forget{number, 42, 7, 99}));
  ASSERT_TRUE(Until([&] { return Status().tombstones == 1; }));
  EXPECT_TRUE(SocketIsThere());
  const auto deleted = Ask<link::Deleted>(DeleteOf("c1"));
  ASSERT_TRUE(deleted);
  EXPECT_EQ(deleted->pid, 42U);
  EXPECT_EQ(deleted->status, 7U);
  EXPECT_EQ(deleted->exited_at_ns, 99);
  EXPECT_EQ(engine.Count<link::DeleteCall>(), 0U);
  EXPECT_FALSE(SocketIsThere());
}

TEST_F(DeletesTest, AnUnknownInstanceIsAnsweredAtOnce) {
  StartKeeper();
  const auto deleted = Ask<link::Deleted>(DeleteOf("nobody"));
  ASSERT_TRUE(deleted);
  EXPECT_FALSE(deleted->known);
  EXPECT_EQ(deleted->pid, link::kNoPid);
  EXPECT_EQ(deleted->status, 137U);
}

TEST_F(DeletesTest, ASandboxTakesItsMembersAlong) {
  timing_.engine_answers = 10ms;
  Running();
  FakeEngine& engine = *engines[0];
  link::AddMember add;
  add.tag = 3;
  add.address = address_;
  add.id = "member";
  ASSERT_TRUE(engine.channel->Send(add));
  ASSERT_TRUE(Until([&] { return engine.Count<link::MemberAdded>() == 1; }));
  const link::MemberAdded added = engine.All<link::MemberAdded>().front();
  ASSERT_EQ(added.code, 0) << added.message;
  EXPECT_EQ(added.instance.announce.group, "c1");
  const link::Spawned child = Shell(engine, "exec sleep 60");
  link::Protect protect;
  protect.instance = added.instance.number;
  protect.last_resort.init = {child.pid, child.start_time};
  ASSERT_TRUE(engine.channel->Send(protect));
  ASSERT_TRUE(Ask<link::Deleted>(DeleteOf("c1")));
  EXPECT_FALSE(Identify({child.pid}));
  EXPECT_TRUE(Status().instances.empty());
  EXPECT_TRUE(Until([&] { return engine.Count<link::InstanceRemoved>() == 2; }));
  EXPECT_FALSE(engine.All<link::InstanceRemoved>()[0].with_group);
  EXPECT_TRUE(engine.All<link::InstanceRemoved>()[1].with_group);
}

TEST_F(DeletesTest, AForgottenMemberIsGoneAtOnce) {
  Running();
  FakeEngine& engine = *engines[0];
  ASSERT_TRUE(engine.channel->Send(link::AddMember{1, address_, "member", "/b"}));
  ASSERT_TRUE(Until([&] { return engine.Count<link::MemberAdded>() == 1; }));
  const uint64_t number = engine.All<link::MemberAdded>().front().instance.number;
  ASSERT_TRUE(engine.channel->Send(link::Forget{number, 1, 0, 5}));
  ASSERT_TRUE(Until([&] { return Status().instances.size() == 1; }));
  EXPECT_TRUE(SocketIsThere());
}

}  // namespace
}  // namespace gantry::keeper
