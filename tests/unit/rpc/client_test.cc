// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/unix_socket.h>

#include "tests/unit/async/loop_driver.h"
#include "tests/unit/rpc/fake_server.h"

namespace gantry::rpc {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""ms;
using test::Await;
using test::FakeServer;
using test::RunAllReady;
using test::RunUntil;

class ClientTest : public testing::Test {
 protected:
  void Connect() {
    auto pair = UnixSocketPair();
    ASSERT_TRUE(pair) << pair.error().message;
    server_.Adopt(std::move(pair->first));
    client_ = std::make_unique<Client>(loop_, std::move(pair->second));
  }

  /// Starts a call; its result will be in `results_[payload]`.
  void Begin(const std::string& payload, std::chrono::nanoseconds timeout = {}) {
    async::Start(Keep(client_->Call("t.Test", "Do", payload, timeout), payload));
  }

  async::Task<void> Keep(async::Task<Result<std::string>> call, std::string name) {
    results_[name] = co_await std::move(call);
  }

  async::Loop loop_;
  FakeServer server_{loop_};
  std::unique_ptr<Client> client_;
  std::map<std::string, Result<std::string>> results_;
};

TEST_F(ClientTest, CallsOverASocket) {
  auto dir = os::TempDir::Create();
  ASSERT_TRUE(dir) << dir.error().message;
  const std::string path = dir->path() + "/s";
  EXPECT_EQ(Await(loop_, Client::Connect(loop_, path, 1h)).error().code, Code::kNotFound);
  server_.Listen(path);
  server_.on_request = [&](const FakeServer::Received& received) {
    server_.Answer(received, "answer to " + received.request.payload);
  };
  auto client = Await(loop_, Client::Connect(loop_, path, 1h));
  ASSERT_TRUE(client) << client.error().message;
  const auto result =
      Await(loop_, (*client)->Call("a.Service", "Do", "question", 1h, {{"key", "value"}}));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(*result, "answer to question");
  ASSERT_EQ(server_.requests.size(), 1U);
  const Request& request = server_.requests[0].request;
  EXPECT_EQ(request.service, "a.Service");
  EXPECT_EQ(request.method, "Do");
  EXPECT_EQ(request.timeout, 1h);
  EXPECT_EQ(FindMetadata(request.metadata, "key"), "value");
}

TEST_F(ClientTest, NumbersStreamsOddAndTakesAnswersInAnyOrder) {
  Connect();
  server_.on_request = [](const FakeServer::Received&) {};
  Begin("a");
  Begin("b");
  ASSERT_TRUE(RunUntil(loop_, [&] { return server_.requests.size() == 2; }));
  EXPECT_EQ(server_.requests[0].stream, 1U);
  EXPECT_EQ(server_.requests[1].stream, 3U);
  server_.Answer(server_.requests[1], "second");
  ASSERT_TRUE(RunUntil(loop_, [&] { return results_.contains("b"); }));
  EXPECT_EQ(*results_["b"], "second");
  EXPECT_FALSE(results_.contains("a"));
  server_.Answer(server_.requests[0], Fail(Code::kNotFound, "no such thing"));
  ASSERT_TRUE(RunUntil(loop_, [&] { return results_.contains("a"); }));
  EXPECT_EQ(results_["a"].error().code, Code::kNotFound);
  EXPECT_EQ(results_["a"].error().message, "no such thing");
}

TEST_F(ClientTest, ALateAnswerHarmsNothing) {
  Connect();
  server_.on_request = [](const FakeServer::Received&) {};
  Begin("late", 1ms);
  ASSERT_TRUE(RunUntil(loop_, [&] { return results_.contains("late"); }));
  EXPECT_EQ(results_["late"].error().code, Code::kDeadlineExceeded);
  ASSERT_TRUE(RunUntil(loop_, [&] { return server_.requests.size() == 1; }));
  server_.Answer(server_.requests[0], "at last");
  server_.on_request = nullptr;
  EXPECT_TRUE(Await(loop_, client_->Call("t.Test", "Do", "", 1h)));
  EXPECT_FALSE(client_->closed());
}

TEST_F(ClientTest, TheEndOfTheConnectionEndsAllCalls) {
  Connect();
  bool told = false;
  client_->OnClose([&] { told = true; });
  server_.on_request = [](const FakeServer::Received&) {};
  Begin("a");
  Begin("b", 1h);
  ASSERT_TRUE(RunUntil(loop_, [&] { return server_.requests.size() == 2; }));
  server_.CloseConnections();
  ASSERT_TRUE(RunUntil(loop_, [&] { return results_.size() == 2 && told; }));
  EXPECT_EQ(results_["a"].error().code, Code::kUnavailable);
  EXPECT_EQ(results_["b"].error().code, Code::kUnavailable);
  EXPECT_TRUE(client_->closed());
  EXPECT_EQ(Await(loop_, client_->Call("t.Test", "Do", "", 1h)).error().code, Code::kUnavailable);
  EXPECT_EQ(loop_.timers(), 0U);
}

TEST_F(ClientTest, MayGoWhileCallsWait) {
  Connect();
  client_->OnClose([] { ADD_FAILURE() << "told of its own end"; });
  server_.on_request = [](const FakeServer::Received&) {};
  Begin("a", 1h);
  ASSERT_TRUE(RunUntil(loop_, [&] { return server_.requests.size() == 1; }));
  client_.reset();
  ASSERT_TRUE(RunUntil(loop_, [&] { return results_.contains("a"); }));
  EXPECT_EQ(results_["a"].error().code, Code::kUnavailable);
  RunAllReady(loop_);
  EXPECT_EQ(loop_.timers(), 0U);
}

TEST_F(ClientTest, SendsMoreThanTheSocketTakesAtOnce) {
  Connect();
  const std::string big(kMaxFrameBytes - 1000, 'x');
  Begin(big);
  EXPECT_TRUE(server_.requests.empty());
  ASSERT_TRUE(RunUntil(loop_, [&] { return results_.contains(big); }));
  EXPECT_TRUE(results_[big]);
  EXPECT_EQ(server_.requests[0].request.payload, big);
}

TEST_F(ClientTest, RefusesWhatCannotBeSent) {
  Connect();
  const std::string too_big(kMaxFrameBytes, 'x');
  EXPECT_EQ(Await(loop_, client_->Call("t.Test", "Do", too_big, 1h)).error().code,
            Code::kResourceExhausted);
  // Nothing of it was sent: the connection is as before.
  EXPECT_TRUE(Await(loop_, client_->Call("t.Test", "Do", "", 1h)));
  const std::string big(kMaxFrameBytes - 1000, 'x');
  for (const char* name : {"1", "2", "3", "4", "5"}) {
    Begin(name + big);
  }
  ASSERT_TRUE(results_.contains("5" + big));
  EXPECT_EQ(results_["5" + big].error().code, Code::kResourceExhausted);
  ASSERT_TRUE(RunUntil(loop_, [&] { return results_.size() == 5; }));
  EXPECT_TRUE(results_["4" + big]);
}

TEST_F(ClientTest, SkipsFramesItDoesNotKnowAndAnswersThatAreTooLarge) {
  Connect();
  server_.on_request = [&](const FakeServer::Received& received) {
    server_.SendRaw(received.connection, *EncodeFrame(received.stream, FrameType(9), 0, "what"));
    server_.SendRaw(received.connection, *EncodeFrame(received.stream, FrameType::kData, 0, "x"));
    server_.SendRaw(received.connection, *EncodeFrame(999, FrameType::kResponse, 0, ""));
    server_.Answer(received, "right");
  };
  EXPECT_EQ(*Await(loop_, client_->Call("t.Test", "Do", "", 1h)), "right");
  server_.on_request = [&](const FakeServer::Received& received) {
    server_.SendRaw(received.connection, std::string("\xff\0\0\0\0\0\0", 7) +
                                             static_cast<char>(received.stream) +
                                             std::string("\2\0", 2));
  };
  EXPECT_EQ(Await(loop_, client_->Call("t.Test", "Do", "", 1h)).error().code,
            Code::kResourceExhausted);
}

}  // namespace
}  // namespace gantry::rpc
