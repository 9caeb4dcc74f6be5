// SPDX-License-Identifier: Apache-2.0
//
// Connections on which clients open streams: what is read of them, who gets them, how long they are
// kept, and what becomes of those that nobody should make.
#include "core/async/loop.h"
#include "tests/unit/keeper/node.h"

namespace gantry::keeper {
namespace {

std::string OpenRequest(const std::string& service = "containerd.services.streaming.v1.Streaming",
                        const std::string& method = "Stream") {
  ProtoWriter request;
  request.Bytes(1, service);
  request.Bytes(2, method);
  return request.Take();
}

std::string Init(const std::string& id,
                 const std::string& type = "containerd.services.streaming.v1.StreamInit") {
  ProtoWriter init;
  init.Text(1, id);
  ProtoWriter any;
  any.Bytes(1, type);
  any.Bytes(2, init.str());
  return any.Take();
}

class StreamsTest : public KeeperTest {
 protected:
  void SetUp() override {
    StartKeeper();
    address_ = Announce("c1");
  }

  KeeperOptions MakeOptions() override {
    KeeperOptions options = KeeperTest::MakeOptions();
    options.limits.parked_per_place = 8;
    options.limits.parked = 12;
    options.limits.silence = silence_;
    options.limits.parked_patience = patience_;
    return options;
  }

  FakeEngine& StreamingEngine(size_t index = 0) {
    FakeEngine& engine = Engine(index);
    link::Hello hello{link::kProtocolVersion};
    hello.takes_streams = true;
    EXPECT_TRUE(engine.channel->Send(hello));
    EXPECT_TRUE(Until([&] { return engine.Count<link::SnapshotEnd>() == 1; }));
    return engine;
  }

  static void Open(Client& client, const std::string& id) {
    client.Call(1, OpenRequest(), kFlagRemoteOpen);
    client.Call(1, Init(id), 0, kFrameData);
  }

  bool Answered(Client& client) {
    return Until([&] {
      client.Poll();
      return !client.answers.empty();
    });
  }

  bool Closed(Client& client) {
    return Until([&] {
      client.Poll();
      return client.closed;
    });
  }

  std::string address_;
  std::chrono::milliseconds silence_ = 10min;
  std::chrono::milliseconds patience_ = 10min;
};

TEST_F(StreamsTest, AStreamIsAnsweredAndGivenToTheEngine) {
  FakeEngine& engine = StreamingEngine();
  Client client(loop_, address_);
  Open(client, "c1-stdout");
  ASSERT_TRUE(Answered(client));
  EXPECT_EQ(client.answers[0].type, kFrameData);
  EXPECT_EQ(client.answers[0].flags, 0);
  EXPECT_EQ(client.answers[0].stream, 1U);
  ProtoReader any(client.answers[0].payload);
  ASSERT_TRUE(any.Next());
  EXPECT_EQ(any.text(), "google.protobuf.Empty");
  ASSERT_TRUE(Until([&] { return engine.Count<link::StreamOpened>() == 1; }));
  const link::StreamOpened opened = engine.All<link::StreamOpened>().front();
  EXPECT_EQ(opened.address, address_);
  EXPECT_EQ(opened.id, "c1-stdout");
  EXPECT_EQ(opened.stream, 1U);
  EXPECT_EQ(engine.Count<link::Request>(), 0U);
}

TEST_F(StreamsTest, NotAByteOfWhatFollowsIsRead) {
  FakeEngine& engine = StreamingEngine();
  Client client(loop_, address_);
  std::string all;
  for (const auto& [payload, flags, type] :
       {std::tuple(OpenRequest(), kFlagRemoteOpen, kFrameRequest),
        std::tuple(Init("c1-stdout"), uint8_t{0}, kFrameData)}) {
    std::string frame = ResponseFrame(1, payload);
    frame[8] = static_cast<char>(type);
    frame[9] = static_cast<char>(flags);
    all += frame;
  }
  client.SendBytes(all + "what is for the engine");
  ASSERT_TRUE(Until([&] { return engine.Count<link::StreamOpened>() == 1; }));
  Settle();
  for (const link::Message& message : engine.got) {
    if (message.type == link::Type::kStreamOpened) {
      ASSERT_EQ(message.fds.size(), 1U);
      char buffer[100];
      const ssize_t got = recv(message.fds[0].get(), buffer, sizeof(buffer), MSG_DONTWAIT);
      EXPECT_EQ(std::string(buffer, got > 0 ? static_cast<size_t>(got) : 0),
                "what is for the engine");
    }
  }
}

TEST_F(StreamsTest, ItWaitsForAnEngineAndGoesToEachUntilItIsTaken) {
  Client client(loop_, address_);
  Open(client, "c1-stdin");
  ASSERT_TRUE(Answered(client)) << "without an engine";
  FakeEngine& first = StreamingEngine();
  ASSERT_TRUE(Until([&] { return first.Count<link::StreamOpened>() == 1; }));
  first.Crash();
  FakeEngine& second = StreamingEngine(1);
  ASSERT_TRUE(Until([&] { return second.Count<link::StreamOpened>() == 1; }));
  const uint64_t connection = second.All<link::StreamOpened>().front().connection;
  EXPECT_EQ(Status().connections, 1U);
  EXPECT_TRUE(second.channel->Send(link::StreamTaken{connection}));
  ASSERT_TRUE(Until([&] { return Status().connections == 0; }));
  Settle();
  client.Poll();
  EXPECT_FALSE(client.closed) << "the engine has it";
  EXPECT_EQ(second.Count<link::ConnectionClosed>(), 0U);
  second.Crash();
  FakeEngine& third = StreamingEngine(2);
  Settle();
  EXPECT_EQ(third.Count<link::StreamOpened>(), 0U);
}

TEST_F(StreamsTest, ItComesBeforeTheCallForItsProcess) {
  Client streams(loop_, address_);
  Client calls(loop_, address_);
  calls.Call(1, "create");
  Settle();
  Open(streams, "c1-stdout");
  ASSERT_TRUE(Answered(streams));
  FakeEngine& engine = StreamingEngine();
  ASSERT_TRUE(Until([&] { return engine.Count<link::Request>() == 1; }));
  const auto at = [&](link::Type type) {
    return std::ranges::find(engine.got, type, &link::Message::type) - engine.got.begin();
  };
  EXPECT_LT(at(link::Type::kStreamOpened), at(link::Type::kRequest));
}

TEST_F(StreamsTest, AClientThatGivesUpIsForgotten) {
  FakeEngine& engine = StreamingEngine();
  {
    Client client(loop_, address_);
    Open(client, "c1-stdout");
    ASSERT_TRUE(Until([&] { return engine.Count<link::StreamOpened>() == 1; }));
  }
  ASSERT_TRUE(Until([&] { return engine.Count<link::ConnectionClosed>() == 1; }));
  EXPECT_EQ(engine.All<link::ConnectionClosed>().front().connection,
            engine.All<link::StreamOpened>().front().connection);
  EXPECT_EQ(Status().connections, 0U);
}

TEST_F(StreamsTest, AnEngineOfBeforeRefusesThem) {
  Client early(loop_, address_);
  Open(early, "c1-stdin");
  ASSERT_TRUE(Answered(early));
  FakeEngine& engine = ReadyEngine();
  EXPECT_TRUE(Closed(early));
  Client client(loop_, address_);
  Open(client, "c1-stdout");
  ASSERT_TRUE(Answered(client));
  EXPECT_EQ(client.CodeOf(0), 12);
  EXPECT_FALSE(client.closed);
  client.Call(3, "a call");
  ASSERT_TRUE(Until([&] { return engine.Count<link::Request>() == 1; }));
  EXPECT_EQ(engine.Count<link::StreamOpened>(), 0U);
}

TEST_F(StreamsTest, WhatIsNoOpeningIsRefusedAndTheRestGoesOn) {
  FakeEngine& engine = StreamingEngine();
  const std::pair<std::string, uint8_t> bad[] = {
      {Init("x", "google.protobuf.Empty"), kFrameData},
      {Init(""), kFrameData},
      {Init(std::string(513, 'x')), kFrameData},
      {"\xff\xff", kFrameData},
      {"", kFrameData},
      {OpenRequest(), kFrameRequest},
  };
  for (const auto& [message, type] : bad) {
    Client client(loop_, address_);
    client.Call(1, OpenRequest(), kFlagRemoteOpen);
    client.Call(1, message, 0, type);
    ASSERT_TRUE(Answered(client));
    EXPECT_EQ(client.CodeOf(0), 3);
    const size_t before = engine.Count<link::Request>();
    client.Call(3, "a call");
    ASSERT_TRUE(Until([&] { return engine.Count<link::Request>() == before + 1; }));
  }
  EXPECT_EQ(engine.Count<link::StreamOpened>(), 0U);
}

TEST_F(StreamsTest, OnlyTheFirstCallOfAConnectionOpensAStream) {
  FakeEngine& engine = StreamingEngine();
  Client client(loop_, address_);
  client.Call(1, "a call");
  client.Call(3, OpenRequest(), kFlagRemoteOpen);
  ASSERT_TRUE(Answered(client));
  EXPECT_EQ(client.CodeOf(0), 12);
  Client other(loop_, address_);
  other.Call(1, OpenRequest("some.other.Service"), kFlagRemoteOpen);
  ASSERT_TRUE(Answered(other));
  EXPECT_EQ(other.CodeOf(0), 12);
  EXPECT_EQ(engine.Count<link::StreamOpened>(), 0U);
}

TEST_F(StreamsTest, TooManyAreRefusedAndThoseThereAreUnharmed) {
  FakeEngine& engine = StreamingEngine();
  const std::string other = Announce("c2");
  std::vector<std::unique_ptr<Client>> clients;
  int refused = 0;
  for (int i = 0; i < 40; ++i) {
    clients.push_back(std::make_unique<Client>(loop_, i % 2 == 0 ? address_ : other));
    Open(*clients.back(), "stream-" + std::to_string(i));
    ASSERT_TRUE(Answered(*clients.back()));
    refused += clients.back()->answers[0].type == kFrameResponse ? 1 : 0;
    if (clients.back()->answers[0].type == kFrameResponse) {
      EXPECT_EQ(clients.back()->CodeOf(0), 8);
    }
  }
  EXPECT_EQ(refused, 40 - 12);
  EXPECT_EQ(engine.Count<link::StreamOpened>(), 12U);
  EXPECT_EQ(engine.Count<link::ConnectionClosed>(), 0U);
  // Each that goes makes room for another.
  clients.clear();
  ASSERT_TRUE(Until([&] { return engine.Count<link::ConnectionClosed>() == 12; }));
  Client again(loop_, address_);
  Open(again, "again");
  ASSERT_TRUE(Answered(again));
  EXPECT_EQ(again.answers[0].type, kFrameData);
}

TEST_F(StreamsTest, AChangeOfTheProgramTakesThemAlong) {
  FrontDoor first(loop_, {}, [] {}, [] {});
  const std::string path = dir_.path() + "/door";
  ASSERT_TRUE(first.Listen({path, "default", ""}));
  Client parked(loop_, "unix://" + path);
  Open(parked, "c1-stdout");
  ASSERT_TRUE(Answered(parked));
  Client opening(loop_, "unix://" + path);
  opening.Call(1, OpenRequest(), kFlagRemoteOpen);
  Settle();
  state::FrontDoor saved = first.Save();
  for (auto& listener : saved.listeners) {
    listener.fd = dup(listener.fd);
  }
  for (auto& connection : saved.connections) {
    connection.fd = dup(connection.fd);
  }
  FrontDoor second(loop_, {}, [] {}, [] {});
  second.Restore(saved, nullptr, false);
  EXPECT_EQ(second.connections(), 2U);
  const state::FrontDoor again = second.Save();
  EXPECT_EQ(again.connections[0].stream_id, "c1-stdout");
  EXPECT_EQ(again.connections[0].streaming, saved.connections[0].streaming);
  EXPECT_EQ(again.connections[1].streaming, saved.connections[1].streaming);
}

class SilentStreams : public StreamsTest {
 protected:
  SilentStreams() { silence_ = 0ms; }
};

TEST_F(SilentStreams, WhoDoesNotSayWhichStreamIsClosed) {
  FakeEngine& engine = StreamingEngine();
  Client client(loop_, address_);
  client.Call(1, OpenRequest(), kFlagRemoteOpen);
  EXPECT_TRUE(Closed(client));
  EXPECT_EQ(Status().connections, 0U);
  EXPECT_EQ(engine.Count<link::StreamOpened>(), 0U);
}

class ImpatientStreams : public StreamsTest {
 protected:
  ImpatientStreams() { patience_ = 0ms; }
};

TEST_F(ImpatientStreams, WhoHasWaitedForVeryLongGoesForAnother) {
  FakeEngine& engine = StreamingEngine();
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 9; ++i) {
    clients.push_back(std::make_unique<Client>(loop_, address_));
    Open(*clients.back(), "stream-" + std::to_string(i));
    ASSERT_TRUE(Answered(*clients.back()));
    EXPECT_EQ(clients.back()->answers[0].type, kFrameData);
  }
  EXPECT_TRUE(Closed(*clients.front()));
  EXPECT_TRUE(Until([&] {
    return engine.Count<link::StreamOpened>() == 9 && engine.Count<link::ConnectionClosed>() == 1;
  }));
}

}  // namespace
}  // namespace gantry::keeper
