// SPDX-License-Identifier: Apache-2.0
//
// containerd's connections: parking, replay, limits, nonsense.
#include "tests/unit/keeper/node.h"

namespace gantry::keeper {
namespace {

class ConnectionsTest : public KeeperTest {
 protected:
  void SetUp() override {
    StartKeeper();
    address_ = Announce("c1");
  }

  KeeperOptions MakeOptions() override {
    KeeperOptions options = KeeperTest::MakeOptions();
    options.limits.request_bytes = 3U << 20;
    options.limits.request_bytes_per_connection = 2U << 20;
    options.limits.requests_per_connection = 10;
    options.limits.connections = 1200;
    options.limits.connections_per_place = 1300;
    options.limits.silence = 0ms;
    return options;
  }

  bool Answered(Client& client, size_t count) {
    return Until([&] {
      client.Poll();
      return client.answers.size() >= count;
    });
  }

  void Respond(FakeEngine& engine, const link::Request& request, const std::string& payload) {
    ASSERT_TRUE(engine.channel->Send(link::Response{request.connection, request.stream, payload}));
  }

  std::string address_;
};

TEST_F(ConnectionsTest, ARequestWaitsForTheEngine) {
  Client client(loop_, address_);
  client.Call(1, "hello");
  Settle();
  FakeEngine& engine = ReadyEngine();
  ASSERT_TRUE(Until([&] { return engine.Count<link::Request>() == 1; }));
  const link::Request request = engine.All<link::Request>().front();
  EXPECT_EQ(request.payload, "hello");
  EXPECT_EQ(request.ns, "default");
  EXPECT_EQ(request.grpc_address, "/run/containerd.sock");
  EXPECT_EQ(request.address, address_);
  EXPECT_FALSE(request.replay);
  Respond(engine, request, "world");
  ASSERT_TRUE(Answered(client, 1));
  EXPECT_EQ(client.answers[0].payload, "world");
  EXPECT_EQ(client.answers[0].stream, 1U);
  EXPECT_EQ(client.answers[0].type, kFrameResponse);
  EXPECT_EQ(Status().requests_waiting, 0U);
  EXPECT_EQ(Status().request_bytes, 0U);
}

TEST_F(ConnectionsTest, UnansweredRequestsAreReplayedInTheirOrder) {
  FakeEngine& first = ReadyEngine();
  Client one(loop_, address_);
  Client two(loop_, address_);
  one.Call(1, "a");
  Settle();
  two.Call(1, "b");
  Settle();
  one.Call(3, "c");
  ASSERT_TRUE(Until([&] { return first.Count<link::Request>() == 3; }));
  Respond(first, first.All<link::Request>()[0], "");
  ASSERT_TRUE(Answered(one, 1));
  first.Crash();
  two.Call(3, "d");
  FakeEngine& second = ReadyEngine(1);
  ASSERT_TRUE(Until([&] { return second.Count<link::Request>() == 3; }));
  const auto requests = second.All<link::Request>();
  EXPECT_EQ(requests[0].payload, "b");
  EXPECT_TRUE(requests[0].replay);
  EXPECT_EQ(requests[1].payload, "c");
  EXPECT_TRUE(requests[1].replay);
  EXPECT_EQ(requests[2].payload, "d");
  for (const link::Request& request : requests) {
    Respond(second, request, "ok");
  }
  EXPECT_TRUE(Answered(two, 2));
  EXPECT_TRUE(Answered(one, 2));
  EXPECT_FALSE(one.closed);
}

TEST_F(ConnectionsTest, AClosedConnectionIsToldAndForgotten) {
  FakeEngine& engine = ReadyEngine();
  {
    Client client(loop_, address_);
    client.Call(1, "x");
    ASSERT_TRUE(Until([&] { return engine.Count<link::Request>() == 1; }));
  }
  ASSERT_TRUE(Until([&] { return engine.Count<link::ConnectionClosed>() == 1; }));
  EXPECT_EQ(Status().requests_waiting, 0U);
  EXPECT_EQ(Status().request_bytes, 0U);
  Respond(engine, engine.All<link::Request>().front(), "late");
  Settle();
}

TEST_F(ConnectionsTest, AClientThatOnlyLooksIsNoNews) {
  FakeEngine& engine = ReadyEngine();
  {
    const Client client(loop_, address_);
  }
  Settle();
  EXPECT_EQ(engine.Count<link::ConnectionClosed>(), 0U);
  EXPECT_EQ(Status().connections, 0U);
}

TEST_F(ConnectionsTest, BadStreamsAreRefusedAndTheRestGoesOn) {
  FakeEngine& engine = ReadyEngine();
  Client client(loop_, address_);
  client.Call(2, "even");
  client.Call(5, "fine");
  client.Call(3, "back");
  client.Call(7, "stream", kFlagRemoteOpen);
  client.Call(9, "data", 0, 3);
  client.Call(11, "unknown", 0, 77);
  ASSERT_TRUE(Answered(client, 3));
  EXPECT_EQ(client.CodeOf(0), 3);
  EXPECT_EQ(client.CodeOf(1), 3);
  EXPECT_EQ(client.CodeOf(2), 12);
  EXPECT_EQ(client.answers[2].stream, 7U);
  ASSERT_TRUE(Until([&] { return engine.Count<link::Request>() == 1; }));
  client.Call(13, "after");
  ASSERT_TRUE(Until([&] { return engine.Count<link::Request>() == 2; }));
  EXPECT_EQ(engine.All<link::Request>()[1].payload, "after");
}

TEST_F(ConnectionsTest, AFrameBeyondTheLimitIsAnsweredAndSkipped) {
  FakeEngine& engine = ReadyEngine();
  Client client(loop_, address_);
  client.Call(1, std::string(kMaxPayload + 1, 'x'));
  client.Call(3, "small");
  ASSERT_TRUE(Answered(client, 1));
  EXPECT_EQ(client.CodeOf(0), 8);
  ASSERT_TRUE(Until([&] { return engine.Count<link::Request>() == 1; }));
  EXPECT_EQ(engine.All<link::Request>().front().stream, 3U);
}

TEST_F(ConnectionsTest, TooManyRequestsHarmOnlyTheNewOnes) {
  Client client(loop_, address_);
  for (uint32_t i = 0; i < 12; ++i) {
    client.Call(2 * i + 1, std::to_string(i));
  }
  ASSERT_TRUE(Answered(client, 2));
  EXPECT_EQ(client.CodeOf(0), 8);
  EXPECT_EQ(client.answers[0].stream, 21U);
  FakeEngine& engine = ReadyEngine();
  ASSERT_TRUE(Until([&] { return engine.Count<link::Request>() == 10; }));
}

TEST_F(ConnectionsTest, TooManyBytesHarmOnlyTheNewOnes) {
  Client one(loop_, address_);
  Client two(loop_, address_);
  const std::string million(1000000, 'x');
  one.Call(1, million);
  one.Call(3, million);
  one.Call(5, million);
  ASSERT_TRUE(Answered(one, 1));
  EXPECT_EQ(one.answers[0].stream, 5U);
  EXPECT_EQ(one.CodeOf(0), 8);
  two.Call(1, million);
  two.Call(3, million);
  ASSERT_TRUE(Answered(two, 1));
  EXPECT_EQ(two.answers[0].stream, 3U);
  EXPECT_LE(Status().request_bytes, 3U << 20);
  FakeEngine& engine = ReadyEngine();
  ASSERT_TRUE(Until([&] { return engine.Count<link::Request>() == 3; }));
}

TEST_F(ConnectionsTest, UnfinishedFramesCountToo) {
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 6; ++i) {
    clients.push_back(std::make_unique<Client>(loop_, address_));
    const std::string frame = ResponseFrame(1, std::string(1000000, 'x'));
    clients.back()->SendBytes(std::string_view(frame).substr(0, 900000));
  }
  Settle();
  EXPECT_LE(Status().request_bytes, 3U << 20);
}

TEST_F(ConnectionsTest, ADeadlineWithoutAnEngineIsAnswered) {
  Client client(loop_, address_);
  ProtoWriter request;
  request.Bytes(1, "service");
  request.Int(4, 1'000'000);
  client.Call(1, request.str());
  client.Call(3, "no deadline");
  ASSERT_TRUE(Answered(client, 1));
  EXPECT_EQ(client.CodeOf(0), 4);
  EXPECT_EQ(Status().requests_waiting, 1U);
}

TEST_F(ConnectionsTest, AThousandSilentOnesDoNoHarm) {
  FakeEngine& engine = ReadyEngine();
  std::vector<std::unique_ptr<Client>> silent;
  for (int i = 0; i < 1000; ++i) {
    silent.push_back(std::make_unique<Client>(loop_, address_));
    loop_.RunOnce(0ms);
  }
  Client client(loop_, address_);
  client.Call(1, "x");
  ASSERT_TRUE(Until([&] { return engine.Count<link::Request>() == 1; }));
  EXPECT_GE(Status().connections, 1000U);
}

TEST_F(ConnectionsTest, TheOldestSilentOneMakesRoom) {
  FakeEngine& engine = ReadyEngine();
  std::vector<std::unique_ptr<Client>> clients;
  clients.push_back(std::make_unique<Client>(loop_, address_));
  clients[0]->Call(1, "I speak");
  for (int i = 0; i < 1250; ++i) {
    clients.push_back(std::make_unique<Client>(loop_, address_));
    loop_.RunOnce(0ms);
  }
  ASSERT_TRUE(Until([&] {
    clients[1]->Poll();
    return clients[1]->closed;
  }));
  clients.back()->Call(1, "x");
  ASSERT_TRUE(Until([&] { return engine.Count<link::Request>() == 2; }));
  EXPECT_LE(Status().connections, 1200U);
  clients[0]->Poll();
  EXPECT_FALSE(clients[0]->closed);
}

TEST_F(ConnectionsTest, AClientThatDoesNotReadIsNotReadEither) {
  FakeEngine& engine = ReadyEngine();
  Client client(loop_, address_);
  for (uint32_t i = 0; i < 5; ++i) {
    client.Call(2 * i + 1, "x");
  }
  ASSERT_TRUE(Until([&] { return engine.Count<link::Request>() == 5; }));
  for (const link::Request& request : engine.All<link::Request>()) {
    Respond(engine, request, std::string(1000000, 'y'));
  }
  Settle();
  client.Call(11, "not read yet");
  Settle();
  EXPECT_EQ(engine.Count<link::Request>(), 5U);
  ASSERT_TRUE(Answered(client, 5));
  ASSERT_TRUE(Until([&] { return engine.Count<link::Request>() == 6; }));
}

TEST_F(ConnectionsTest, AnAnswerBeyondTheLimitBecomesAnError) {
  FakeEngine& engine = ReadyEngine();
  Client client(loop_, address_);
  client.Call(1, "x");
  ASSERT_TRUE(Until([&] { return engine.Count<link::Request>() == 1; }));
  Respond(engine, engine.All<link::Request>().front(), std::string(kMaxPayload + 1, 'y'));
  ASSERT_TRUE(Answered(client, 1));
  EXPECT_EQ(client.CodeOf(0), 8);
}

TEST_F(ConnectionsTest, TheOperatorsSocketHasNoNamespace) {
  FakeEngine& engine = ReadyEngine();
  Client client(loop_, "unix://" + dir_.path() + "/gantry.sock");
  client.Call(1, "list");
  ASSERT_TRUE(Until([&] { return engine.Count<link::Request>() == 1; }));
  EXPECT_EQ(engine.All<link::Request>().front().ns, "");
}

class PlacesTest : public ConnectionsTest {
 protected:
  KeeperOptions MakeOptions() override {
    KeeperOptions options = ConnectionsTest::MakeOptions();
    options.limits.request_bytes_per_place = 2'000'000;
    options.limits.connections_per_place = kMostOfOne;
    return options;
  }

  static constexpr size_t kMostOfOne = 3;
};

TEST_F(PlacesTest, BytesOfOneSandboxLeaveRoomToAnother) {
  const std::string other = Announce("c2");
  std::vector<std::unique_ptr<Client>> many;
  const std::string much(900'000, 'x');
  for (int i = 0; i < 3; ++i) {
    many.push_back(std::make_unique<Client>(loop_, address_));
    many.back()->Call(1, much);
    Settle();
  }
  ASSERT_TRUE(Answered(*many[2], 1));
  EXPECT_EQ(many[2]->CodeOf(0), 8);
  Client two(loop_, other);
  two.Call(1, much);
  FakeEngine& engine = ReadyEngine();
  ASSERT_TRUE(Until([&] { return engine.Count<link::Request>() == 3; }));
  EXPECT_EQ(engine.All<link::Request>().back().address, other);
}

TEST_F(PlacesTest, ConnectionsOfOneSandboxWaitForOneAnother) {
  FakeEngine& engine = ReadyEngine();
  const std::string other = Announce("c2");
  std::vector<std::unique_ptr<Client>> many;
  for (size_t i = 0; i <= kMostOfOne; ++i) {
    many.push_back(std::make_unique<Client>(loop_, address_));
    many.back()->Call(1, "x");
    loop_.RunOnce(0ms);
  }
  ASSERT_TRUE(Until([&] { return engine.Count<link::Request>() == kMostOfOne; }));
  Client two(loop_, other);
  two.Call(1, "two");
  ASSERT_TRUE(Until([&] { return engine.Count<link::Request>() == kMostOfOne + 1; }));
  EXPECT_EQ(engine.All<link::Request>().back().payload, "two");
  many.erase(many.begin());
  ASSERT_TRUE(Until([&] { return engine.Count<link::Request>() == kMostOfOne + 2; }));
}

}  // namespace
}  // namespace gantry::keeper
