// SPDX-License-Identifier: Apache-2.0
//
// Calls with many messages, with gRPC's own client at the other end.
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/unix_socket.h>

#include "core/door/grpc_stream.h"
#include "core/door/server.h"
#include "tests/unit/async/loop_driver.h"

namespace gantry::door {
namespace {

using testing::ElementsAre;

/// One call of a client, which reads whatever comes, or not.
class ClientStream final
    : public ::grpc::ClientBidiReactor<::grpc::ByteBuffer, ::grpc::ByteBuffer> {
 public:
  ClientStream(::grpc::GenericStub& stub, const std::string& method, bool reads = true)
      : reads_(reads) {
    stub.PrepareBidiStreamingCall(&context_, method, {}, this);
    // What is sent is sent from outside of the callbacks.
    AddHold();
    if (reads_) {
      StartRead(&in_);
    }
    StartCall();
  }

  /// One at a time: wait for `sent` first.
  void Send(const std::string& message) {
    const ::grpc::Slice slice(message);
    out_ = ::grpc::ByteBuffer(&slice, 1);
    StartWrite(&out_);
  }

  void SendNoMore() {
    StartWritesDone();
    RemoveHold();
  }

  void Cancel() {
    context_.TryCancel();
    RemoveHold();
  }

  void OnWriteDone(bool) override { ++sent_; }

  void OnReadDone(bool ok) override {
    if (ok) {
      {
        const std::lock_guard lock(mutex_);
        got_.push_back(BytesOf(in_));
      }
      StartRead(&in_);
    }
  }

  void OnDone(const ::grpc::Status& status) override {
    status_ = status;
    done_ = true;
  }

  int sent() const { return sent_; }

  std::vector<std::string> got() const {
    const std::lock_guard lock(mutex_);
    return got_;
  }

  bool done() const { return done_; }

  const ::grpc::Status& status() const { return status_; }

 private:
  const bool reads_;
  ::grpc::ClientContext context_;
  ::grpc::ByteBuffer in_;
  ::grpc::ByteBuffer out_;
  std::atomic<int> sent_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::string> got_;
  ::grpc::Status status_;
  std::atomic<bool> done_ = false;
};

class StreamsTest : public testing::Test {
 protected:
  void SetUp() override {
    streams_["/t.Test/Echo"] = [](std::shared_ptr<Stream> stream) { return Echo(stream); };
    streams_["/t.Test/Flood"] = [this](std::shared_ptr<Stream> stream) { return Flood(stream); };
    streams_["/t.Test/Refuse"] = [](std::shared_ptr<Stream>) -> async::Task<Status> {
      co_return Fail(Code::kFailedPrecondition, "not now");
    };
    streams_["/t.Test/Wait"] = [this](std::shared_ptr<Stream> stream) { return Wait(stream); };
    Serve({});
  }

  void Serve(const ServerLimits& limits) {
    TearDown();
    end_ = {};
    auto server = Server::Start(loop_, table_, streams_, limits);
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    auto pair = UnixSocketPair();
    ASSERT_TRUE(pair);
    server_->Take(std::move(pair->first));
    channel_ = ::grpc::CreateInsecureChannelFromFd("gantry", pair->second.release());
    stub_ = std::make_unique<::grpc::GenericStub>(channel_);
  }

  void TearDown() override {
    stub_.reset();
    channel_.reset();
    end_.Set();
    test::RunAllReady(loop_);
    server_.reset();
    test::RunAllReady(loop_);
  }

  static async::Task<Status> Echo(std::shared_ptr<Stream> stream) {
    for (;;) {
      GANTRY_CO_TRY(const std::optional<std::string> message, co_await stream->Read());
      if (!message) {
        co_return Status();
      }
      GANTRY_CO_CHECK_OK(co_await stream->Write("echo " + *message));
    }
  }

  async::Task<Status> Flood(std::shared_ptr<Stream> stream) {
    for (;;) {
      Status written = co_await stream->Write(std::string(65536, 'x'));
      if (!written) {
        flood_ended_ = true;
        co_return written;
      }
      ++flooded_;
    }
  }

  async::Task<Status> Wait(std::shared_ptr<Stream> stream) {
    waiting_ = stream;
    async::OneShot<void> end = end_;
    co_await end.Wait();
    co_return Status();
  }

  void Finish(const ClientStream& stream) {
    ASSERT_TRUE(test::RunUntil(loop_, [&] { return stream.done(); }));
  }

  async::Loop loop_;
  rpc::MethodTable table_;
  StreamTable streams_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<::grpc::Channel> channel_;
  std::unique_ptr<::grpc::GenericStub> stub_;
  std::shared_ptr<Stream> waiting_;
  async::OneShot<void> end_;
  int flooded_ = 0;
  bool flood_ended_ = false;
};

TEST_F(StreamsTest, AnswersEachMessage) {
  ClientStream stream(*stub_, "/t.Test/Echo");
  for (const char* word : {"a", "b"}) {
    const int sent = stream.sent();
    stream.Send(word);
    ASSERT_TRUE(test::RunUntil(loop_, [&] { return stream.sent() > sent; }));
  }
  stream.SendNoMore();
  Finish(stream);
  EXPECT_TRUE(stream.status().ok()) << stream.status().error_message();
  EXPECT_THAT(stream.got(), ElementsAre("echo a", "echo b"));
}

TEST_F(StreamsTest, TellsTheHandlersError) {
  ClientStream stream(*stub_, "/t.Test/Refuse");
  stream.SendNoMore();
  Finish(stream);
  EXPECT_EQ(stream.status().error_code(), ::grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(stream.status().error_message(), "not now");
}

TEST_F(StreamsTest, WaitForAReaderThatIsSlowAndForNobodyElse) {
  ClientStream slow(*stub_, "/t.Test/Flood", false);
  ASSERT_TRUE(test::RunUntil(loop_, [&] { return flooded_ > 0; }));
  ClientStream other(*stub_, "/t.Test/Echo");
  other.Send("a");
  other.SendNoMore();
  Finish(other);
  EXPECT_THAT(other.got(), ElementsAre("echo a"));
  // What a client has not asked for is not held here: gRPC's window is full long before that.
  EXPECT_LT(flooded_, 1000);
  slow.Cancel();
  Finish(slow);
  EXPECT_TRUE(test::RunUntil(loop_, [&] { return flood_ended_; }));
}

TEST_F(StreamsTest, TellAHandlerThatItsClientHasGone) {
  ClientStream stream(*stub_, "/t.Test/Wait");
  ASSERT_TRUE(test::RunUntil(loop_, [&] { return waiting_ != nullptr; }));
  EXPECT_FALSE(waiting_->ended());
  stream.Cancel();
  Finish(stream);
  EXPECT_TRUE(test::RunUntil(loop_, [&] { return waiting_->ended(); }));
}

TEST_F(StreamsTest, AreSoManyAndNoMore) {
  Serve({.streams = 1});
  ClientStream first(*stub_, "/t.Test/Wait");
  ASSERT_TRUE(test::RunUntil(loop_, [&] { return waiting_ != nullptr; }));
  ClientStream second(*stub_, "/t.Test/Wait");
  second.SendNoMore();
  Finish(second);
  EXPECT_EQ(second.status().error_code(), ::grpc::StatusCode::RESOURCE_EXHAUSTED);
  end_.Set();
  first.SendNoMore();
  Finish(first);
  EXPECT_TRUE(first.status().ok());
}

TEST_F(StreamsTest, EndWithTheServer) {
  ClientStream stream(*stub_, "/t.Test/Wait");
  ASSERT_TRUE(test::RunUntil(loop_, [&] { return waiting_ != nullptr; }));
  server_.reset();
  stream.SendNoMore();
  Finish(stream);
  EXPECT_FALSE(stream.status().ok());
}

}  // namespace
}  // namespace gantry::door
