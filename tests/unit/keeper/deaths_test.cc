// SPDX-License-Identifier: Apache-2.0
//
// What engines crash of: requests, and groups that they take up.
#include "core/keeper/deaths.h"

#include <algorithm>

#include <gantry/protowire.h>
#include <gantry/toolkit/descriptors/unix_socket.h>

#include "tests/unit/keeper/node.h"

namespace gantry::keeper {
namespace {

constexpr int kInternal = static_cast<int>(Code::kInternal);

std::string CallOf(const std::string& method, const std::string& body = "") {
  ProtoWriter request;
  request.Text(1, "containerd.task.v2.Task");
  request.Text(2, method);
  request.Bytes(3, body);
  return request.Take();
}

class DeathsTest : public KeeperTest {
 protected:
  void SetUp() override {
    StartKeeper();
    address_ = Announce("x");
    other_ = Announce("y");
  }

  KeeperOptions MakeOptions() override {
    KeeperOptions options = KeeperTest::MakeOptions();
    options.limits.trial = trial_;
    options.forgiven_after = forgiven_after_;
    return options;
  }

  /// One that says what it takes up.
  FakeEngine& TellingEngine(size_t index) {
    FakeEngine& engine = Engine(index);
    if (engine.Count<link::SnapshotEnd>() > 0) {
      return engine;
    }
    link::Hello hello{link::kProtocolVersion};
    hello.tells_recovery = true;
    EXPECT_TRUE(engine.channel->Send(hello));
    EXPECT_TRUE(Until([&] { return engine.Count<link::SnapshotEnd>() == 1; }));
    return engine;
  }

  void Say(FakeEngine& engine, const link::Recovering& said) {
    ASSERT_TRUE(engine.channel->Send(said));
  }

  /// It ends with an error by itself, and the keeper knows when the next one starts.
  void CrashAndAwaitNext(size_t index) {
    const char number = 9;
    ASSERT_EQ(send(engines.at(index)->life.get(), &number, 1, MSG_NOSIGNAL), 1);
    Engine(index + 1);
  }

  bool Given(const FakeEngine& engine, size_t count) {
    return Until([&] { return engine.Count<link::Request>() == count; });
  }

  bool Answered(Client& client, size_t count) {
    return Until([&] {
      client.Poll();
      return client.answers.size() >= count;
    });
  }

  static std::vector<std::string> Payloads(const FakeEngine& engine) {
    std::vector<std::string> payloads;
    for (const link::Request& request : engine.All<link::Request>()) {
      payloads.push_back(request.payload);
    }
    return payloads;
  }

  /// As the next engine is told.
  static const link::InstanceAdded& Told(const std::vector<link::InstanceAdded>& all,
                                         const std::string& id) {
    return *std::ranges::find(all, id, [](const auto& one) { return one.announce.id; });
  }

  /// The engines from `first` on crash while they take `x` up, until it is left out; gives the
  /// engine that is told so.
  FakeEngine& CrashOfX(size_t first) {
    for (size_t i = first; i < first + Deaths::kMost; ++i) {
      FakeEngine& engine = TellingEngine(i);
      Say(engine, {{other_, address_}, {}, false});
      Say(engine, {{}, {other_}, false});
      CrashAndAwaitNext(i);
    }
    FakeEngine& engine = TellingEngine(first + Deaths::kMost);
    Say(engine, {{}, {}, true});
    return engine;
  }

  std::string address_;
  std::string other_;
  std::chrono::milliseconds trial_ = 1h;
  std::chrono::milliseconds forgiven_after_ = 1h;
};

TEST_F(DeathsTest, OfTheOnlyRequestAreTwoAtMost) {
  Client client(loop_, address_);
  client.Call(1, CallOf("State"));
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(Given(ReadyEngine(i), 1));
    CrashAndAwaitNext(i);
  }
  ASSERT_TRUE(Answered(client, 1));
  EXPECT_EQ(client.CodeOf(0), kInternal);
  EXPECT_THAT(client.answers[0].payload,
              testing::HasSubstr("answer 'State': the engine died 2 times with this request"));
  FakeEngine& third = ReadyEngine(2);
  Settle();
  EXPECT_EQ(third.Count<link::Request>(), 0U);
  EXPECT_EQ(Status().requests_dropped, 1U);
  EXPECT_EQ(Status().requests_waiting, 0U);
  client.Call(3, CallOf("Kill"));
  EXPECT_TRUE(Given(third, 1)) << "the connection serves on";
}

TEST_F(DeathsTest, OfOneAmongOthersAreThreeAndTheOthersAreServed) {
  // Not in the order in which they came.
  Client innocent(loop_, other_);
  Client client(loop_, address_);
  ASSERT_TRUE(Given(ReadyEngine(0), 0));
  innocent.Call(1, CallOf("State", "y"));
  ASSERT_TRUE(Given(*engines[0], 1));
  client.Call(1, CallOf("State", "x"));
  ASSERT_TRUE(Given(*engines[0], 2));
  CrashAndAwaitNext(0);
  ASSERT_TRUE(Given(ReadyEngine(1), 2)) << "the first time they are simply given again";
  CrashAndAwaitNext(1);
  FakeEngine& third = ReadyEngine(2);
  ASSERT_TRUE(Given(third, 1));
  EXPECT_EQ(Payloads(third), std::vector{CallOf("State", "x")}) << "the last one that was given";
  CrashAndAwaitNext(2);
  ASSERT_TRUE(Answered(client, 1));
  EXPECT_EQ(client.CodeOf(0), kInternal);
  FakeEngine& fourth = ReadyEngine(3);
  ASSERT_TRUE(Given(fourth, 1));
  EXPECT_EQ(Payloads(fourth), std::vector{CallOf("State", "y")});
  const link::Request request = fourth.All<link::Request>().front();
  EXPECT_TRUE(request.replay);
  ASSERT_TRUE(fourth.channel->Send(link::Response{request.connection, request.stream, "fine"}));
  ASSERT_TRUE(Answered(innocent, 1));
  EXPECT_EQ(innocent.answers[0].payload, "fine");
}

TEST_F(DeathsTest, OfSuspectsAreTriedOneAfterTheOther) {
  Client client(loop_, address_);
  for (uint32_t i = 0; i < 3; ++i) {
    client.Call(2 * i + 1, CallOf("State", std::to_string(i)));
  }
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(Given(ReadyEngine(i), 3));
    CrashAndAwaitNext(i);
  }
  FakeEngine& third = ReadyEngine(2);
  for (size_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(Given(third, i));
    Settle();
    ASSERT_EQ(third.Count<link::Request>(), i) << "the next one waits for the answer";
    const link::Request request = third.All<link::Request>().back();
    ASSERT_TRUE(third.channel->Send(link::Response{request.connection, request.stream, "ok"}));
  }
  EXPECT_TRUE(Answered(client, 3));
}

TEST_F(DeathsTest, AreNotThoseOfCallsThatOnlyWait) {
  Client waiting(loop_, other_);
  waiting.Call(1, CallOf("Wait"));
  Client client(loop_, address_);
  client.Call(1, CallOf("State"));
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(Given(ReadyEngine(i), 2));
    CrashAndAwaitNext(i);
  }
  ASSERT_TRUE(Answered(client, 1)) << "it was the only one that does something";
  for (size_t i = 2; i < 5; ++i) {
    ASSERT_TRUE(Given(ReadyEngine(i), 1));
    CrashAndAwaitNext(i);
  }
  ASSERT_TRUE(Given(ReadyEngine(5), 1));
  waiting.Poll();
  EXPECT_TRUE(waiting.answers.empty());
  EXPECT_FALSE(waiting.closed);
}

TEST_F(DeathsTest, AreNotThoseThatSomebodyBroughtAbout) {
  Client client(loop_, address_);
  client.Call(1, CallOf("Create"));
  for (size_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(Given(ReadyEngine(i), 1));
    ASSERT_EQ(kill(Status().engine_pid, SIGKILL), 0);
    Engine(i + 1);
  }
  ASSERT_TRUE(Given(ReadyEngine(4), 1));
  client.Poll();
  EXPECT_TRUE(client.answers.empty());
}

TEST_F(DeathsTest, OfAHangAreCounted) {
  Client client(loop_, address_);
  client.Call(1, CallOf("State"));
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(Engine(i).channel->Send(link::Hello{link::kProtocolVersion, 1, 50}));
    ASSERT_TRUE(Given(*engines[i], 1));
    Engine(i + 1);
  }
  ASSERT_TRUE(Answered(client, 1));
  EXPECT_EQ(client.CodeOf(0), kInternal);
}

TEST_F(DeathsTest, OfAGroupLeaveItOut) {
  Client client(loop_, address_);
  Client other(loop_, other_);
  FakeEngine& fourth = CrashOfX(0);
  const auto told = fourth.All<link::InstanceAdded>();
  EXPECT_TRUE(Told(told, "x").left_out);
  EXPECT_EQ(Told(told, "x").deaths, Deaths::kMost);
  EXPECT_FALSE(Told(told, "y").left_out);
  EXPECT_EQ(Told(told, "y").deaths, 0U);
  client.Call(1, CallOf("State"));
  ASSERT_TRUE(Answered(client, 1));
  EXPECT_EQ(client.CodeOf(0), kInternal);
  EXPECT_THAT(client.answers[0].payload, testing::HasSubstr("'gantryctl delete x' ends it"));
  other.Call(1, CallOf("State"));
  ASSERT_TRUE(Given(fourth, 1));
  EXPECT_EQ(fourth.All<link::Request>().front().address, other_);
  const auto shown = Status().instances;
  EXPECT_TRUE(Told(shown, "x").left_out);
}

TEST_F(DeathsTest, OfAGroupEndInAnswersToWhoWaitsThere) {
  Client client(loop_, address_);
  Client waiting(loop_, address_);
  FakeEngine& first = TellingEngine(0);
  client.Call(1, CallOf("Exec"));
  waiting.Call(1, CallOf("Wait"));
  ASSERT_TRUE(Given(first, 2));
  FakeEngine& fourth = CrashOfX(0);
  ASSERT_TRUE(Answered(client, 1));
  EXPECT_EQ(client.CodeOf(0), kInternal);
  waiting.Poll();
  EXPECT_TRUE(waiting.answers.empty()) << "an answer would be its container's end";
  EXPECT_EQ(fourth.Count<link::Request>(), 0U);
  // It is deleted without the engine, which then says so to who waits.
  const auto deleted = Ask<link::Deleted>(DeleteOf("x"));
  ASSERT_TRUE(deleted);
  EXPECT_TRUE(deleted->known);
  ASSERT_TRUE(Given(fourth, 1));
  EXPECT_EQ(Payloads(fourth), std::vector{CallOf("Wait")});
  EXPECT_EQ(fourth.Count<link::DeleteCall>(), 0U);
  EXPECT_EQ(fourth.Count<link::InstanceRemoved>(), 1U);
}

TEST_F(DeathsTest, OfAGroupAreNotBlamedOnARequest) {
  Client other(loop_, other_);
  other.Call(1, CallOf("State"));
  FakeEngine& fourth = CrashOfX(0);
  ASSERT_TRUE(Given(fourth, 1));
  other.Poll();
  EXPECT_TRUE(other.answers.empty());
}

TEST_F(DeathsTest, OfAGroupAreTriedOnceMoreByARestart) {
  CrashOfX(0);
  Client client(loop_, address_);
  link::Channel upgrade(
      loop_, *ConnectUnix(dir_.path() + "/keeper.sock"), [](link::Message) {}, [](const Error&) {});
  ASSERT_TRUE(upgrade.Send(link::Upgrade{}));
  FakeEngine& next = TellingEngine(4);
  const auto told = next.All<link::InstanceAdded>();
  EXPECT_FALSE(Told(told, "x").left_out);
  EXPECT_EQ(Told(told, "x").deaths, Deaths::kMost - 1);
  client.Call(1, CallOf("State"));
  ASSERT_TRUE(Given(next, 1));
  Say(next, {{address_}, {}, false});
  CrashAndAwaitNext(4);
  EXPECT_TRUE(Told(TellingEngine(5).All<link::InstanceAdded>(), "x").left_out);
}

class ForgivenDeathsTest : public DeathsTest {
 protected:
  ForgivenDeathsTest() { forgiven_after_ = 1ms; }
};

TEST_F(ForgivenDeathsTest, AreThoseBeforeAnEngineThatLasted) {
  Client client(loop_, address_);
  client.Call(1, CallOf("Create"));
  for (size_t i = 0; i < 4; ++i) {
    FakeEngine& engine = TellingEngine(i);
    ASSERT_TRUE(Given(engine, 1));
    EXPECT_EQ(Told(engine.All<link::InstanceAdded>(), "x").deaths, i == 0 ? 0U : 1U);
    Settle();
    Say(engine, {{address_}, {}, false});
    Settle();
    CrashAndAwaitNext(i);
  }
  client.Poll();
  EXPECT_TRUE(client.answers.empty());
}

class TrialDeathsTest : public DeathsTest {
 protected:
  TrialDeathsTest() { trial_ = 1ms; }
};

TEST_F(TrialDeathsTest, OfASlowCallHoldNobodyUpForEver) {
  Client client(loop_, address_);
  client.Call(1, CallOf("Create", "1"));
  client.Call(3, CallOf("Create", "2"));
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(Given(TellingEngine(i), 2));
    CrashAndAwaitNext(i);
  }
  // It does not say that it has taken up everything, and answers none.
  EXPECT_TRUE(Given(TellingEngine(2), 2));
}

}  // namespace
}  // namespace gantry::keeper
