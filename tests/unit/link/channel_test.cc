// SPDX-License-Identifier: Apache-2.0
//
// Messages and descriptors on a real socket pair.
#include "core/link/channel.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <vector>

#include <gmock/gmock.h>

#include <gantry/toolkit/descriptors/unix_socket.h>

namespace gantry::link {
namespace {

using namespace std::chrono_literals;

class ChannelTest : public testing::Test {
 protected:
  ChannelTest() {
    auto pair = UnixSocketPair();
    raw_ = std::move(pair->first);
    channel_ = std::make_unique<Channel>(
        loop_, std::move(pair->second), [this](Message message) { OnMessage(std::move(message)); },
        [this](const Error& error) { closed_ = error; });
  }

  virtual void OnMessage(Message message) { got_.push_back(std::move(message)); }

  template <class Predicate>
  bool Until(Predicate done) {
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (!done() && std::chrono::steady_clock::now() < deadline) {
      loop_.RunOnce(100ms);
    }
    return done();
  }

  void WriteRaw(std::string_view bytes) {
    ASSERT_EQ(send(raw_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  async::Loop loop_;
  UniqueFd raw_;
  std::unique_ptr<Channel> channel_;
  std::vector<Message> got_;
  std::optional<Error> closed_;
};

TEST_F(ChannelTest, JoinsAMessageThatComesByteByByte) {
  const std::string body = EncodeProto(Drop{"name"});
  for (const char byte : EncodeHeader(Type::kDrop, body.size(), 0) + body) {
    WriteRaw({&byte, 1});
    loop_.RunOnce(0ms);
  }
  ASSERT_TRUE(Until([&] { return got_.size() == 1; }));
  EXPECT_EQ(got_[0].As<Drop>()->name, "name");
}

TEST_F(ChannelTest, SplitsMessagesThatComeAtOnce) {
  const std::string one = EncodeHeader(Type::kSnapshotEnd, 0, 0);
  WriteRaw(one + one + one);
  ASSERT_TRUE(Until([&] { return got_.size() == 3; }));
}

TEST_F(ChannelTest, ClosesOnABodyBeyondTheLimit) {
  WriteRaw(EncodeHeader(Type::kPut, kMaxBody + 1, 0));
  ASSERT_TRUE(Until([&] { return closed_.has_value(); }));
  EXPECT_EQ(closed_->code, Code::kInvalidArgument);
}

TEST_F(ChannelTest, DeliversTheLastMessagesBeforeItCloses) {
  WriteRaw(EncodeHeader(Type::kSnapshotEnd, 0, 0));
  raw_.reset();
  ASSERT_TRUE(Until([&] { return closed_.has_value(); }));
  EXPECT_EQ(got_.size(), 1U);
}

TEST_F(ChannelTest, RefusesMoreThanAMessageMayHave) {
  EXPECT_EQ(channel_->Send(Type::kPut, std::string(kMaxBody + 1, 'x')).error().code,
            Code::kResourceExhausted);
  EXPECT_EQ(channel_->queued_bytes(), 0U);
}

TEST_F(ChannelTest, KeepsWhatTheSocketDoesNotTake) {
  const std::string big(kMaxBody, 'x');
  ASSERT_TRUE(channel_->Send(Type::kPut, big));
  EXPECT_GT(channel_->queued_bytes(), 0U);
  Assembler in;
  std::optional<Message> got;
  ASSERT_TRUE(Until([&] {
    while (*in.ReadFrom(raw_.get())) {
    }
    if (!got) {
      got = std::move(*in.Next());
    }
    return got.has_value();
  }));
  EXPECT_EQ(got->body.size(), big.size());
  EXPECT_EQ(channel_->queued_bytes(), 0U);
}

/// Who reads what is written to the pipe whose write end `fd` should be.
std::string ReadThrough(const UniqueFd& read_end, const UniqueFd& fd) {
  EXPECT_EQ(write(fd.get(), "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(read(read_end.get(), &byte, 1), 1);
  return {byte};
}

TEST_F(ChannelTest, DescriptorsStayWithTheirMessages) {
  auto pair = UnixSocketPair();
  std::vector<Message> there;
  Channel peer(
      loop_, std::move(pair->second), [&](Message message) { there.push_back(std::move(message)); },
      [](const Error&) {});
  Channel here(loop_, std::move(pair->first), [](const Message&) {}, [](const Error&) {});
  std::vector<UniqueFd> reads;
  for (int i = 0; i < 20; ++i) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    reads.emplace_back(ends[0]);
    std::vector<UniqueFd> fds;
    fds.emplace_back(ends[1]);
    ASSERT_TRUE(here.Send(SnapshotEnd{}));
    ASSERT_TRUE(here.Send(Put{static_cast<uint64_t>(i), {"n"}, {}}, std::move(fds)));
  }
  ASSERT_TRUE(Until([&] { return there.size() == 40; }));
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_TRUE(there[2 * i].fds.empty());
    ASSERT_EQ(there[2 * i + 1].fds.size(), 1U);
    EXPECT_EQ(ReadThrough(reads[i], there[2 * i + 1].fds[0]), "x");
  }
}

class ChannelEndsItself : public ChannelTest {
 protected:
  void OnMessage(Message message) override {
    ChannelTest::OnMessage(std::move(message));
    channel_.reset();
  }
};

TEST_F(ChannelEndsItself, InItsOwnCallback) {
  const std::string one = EncodeHeader(Type::kSnapshotEnd, 0, 0);
  WriteRaw(one + one);
  ASSERT_TRUE(Until([&] { return channel_ == nullptr; }));
  loop_.RunOnce(0ms);
  EXPECT_EQ(got_.size(), 1U);
}

TEST(BlockingChannel, GivesUpAtItsDeadline) {
  auto pair = UnixSocketPair();
  BlockingChannel channel(std::move(pair->first));
  const auto answer = channel.Ask<KeeperStatus>(Query{}, std::chrono::steady_clock::now() + 1ms);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kDeadlineExceeded);
}

TEST(BlockingChannel, TurnsFailedIntoItsError) {
  auto pair = UnixSocketPair();
  BlockingChannel here(std::move(pair->first));
  BlockingChannel there(std::move(pair->second));
  const auto soon = std::chrono::steady_clock::now() + 10s;
  ASSERT_TRUE(there.Send(Type::kFailed, EncodeProto(Failed{6, "it runs"}), soon));
  const auto answer = here.Ask<KeeperStatus>(Query{}, soon);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kAlreadyExists);
  EXPECT_EQ(answer.error().message, "it runs");
}

TEST(BlockingChannel, TellsThatThePeerIsGone) {
  auto pair = UnixSocketPair();
  BlockingChannel here(std::move(pair->first));
  pair->second.reset();
  const auto answer = here.Receive(std::chrono::steady_clock::now() + 10s);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace gantry::link
