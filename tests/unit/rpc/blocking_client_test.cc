// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/blocking_client.h"

#include <array>

#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/unix_socket.h>

#include "core/os/splice.h"

namespace gantry::rpc {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""ms;

/// Answers are written before the calls are made: their streams are known.
class BlockingClientTest : public testing::Test {
 protected:
  void SetUp() override {
    auto pair = UnixSocketPair();
    ASSERT_TRUE(pair) << pair.error().message;
    server_ = std::move(pair->first);
    client_.emplace(std::move(pair->second));
  }

  void Answer(uint32_t stream, const Result<std::string>& result) {
    const auto frame = EncodeFrame(stream, FrameType::kResponse, 0, EncodeResponse(result));
    const auto sent = SendWithFds(server_.get(), *frame, {});
    ASSERT_TRUE(sent && sent->bytes == frame->size());
  }

  UniqueFd server_;
  std::optional<BlockingClient> client_;
};

TEST_F(BlockingClientTest, Calls) {
  Answer(1, "one");
  Answer(3, Fail(Code::kNotFound, "no three"));
  EXPECT_EQ(*client_->Call("t.Test", "Do", "question", 1h, {{"key", "value"}}), "one");
  EXPECT_EQ(client_->Call("t.Test", "Do", "", 1h).error().message, "no three");

  std::array<char, 4096> buffer;
  const auto got = os::ReadSome(server_.get(), buffer);
  ASSERT_TRUE(got);
  FrameSplitter frames;
  frames.Feed(std::string_view(buffer.data(), got->bytes));
  const auto frame = frames.Next();
  ASSERT_TRUE(frame);
  const auto request = DecodeRequest(frame->data);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->payload, "question");
  EXPECT_EQ(request->timeout, 1h);
  EXPECT_EQ(FindMetadata(request->metadata, "key"), "value");
}

TEST_F(BlockingClientTest, ALateAnswerIsSkipped) {
  EXPECT_EQ(client_->Call("t.Test", "Do", "", 1ms).error().code, Code::kDeadlineExceeded);
  Answer(1, "late");
  Answer(3, "right");
  EXPECT_EQ(*client_->Call("t.Test", "Do", "", 1h), "right");
}

TEST_F(BlockingClientTest, AServerThatDoesNotReadOrHasGone) {
  const std::string big(kMaxFrameBytes - 1000, 'x');
  EXPECT_EQ(client_->Call("t.Test", "Do", big, 1ms).error().code, Code::kDeadlineExceeded);
  // A part of the request has been sent; nothing can follow.
  EXPECT_EQ(client_->Call("t.Test", "Do", "", 1h).error().code, Code::kUnavailable);
}

TEST_F(BlockingClientTest, TheServersEnd) {
  server_.reset();
  EXPECT_EQ(client_->Call("t.Test", "Do", "", 1h).error().code, Code::kUnavailable);
  EXPECT_EQ(BlockingClient::Connect("/nonexistent/socket").error().code, Code::kNotFound);
}

}  // namespace
}  // namespace gantry::rpc
