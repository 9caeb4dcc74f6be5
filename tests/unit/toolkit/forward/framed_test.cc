// SPDX-License-Identifier: Apache-2.0
//
// Connections whose end in the sandbox says and hears frames, since its transport cannot end one
// direction alone: that of a virtual machine.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/testing/sandbox_context.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/forward/protocol.h>
#include <gantry/toolkit/forward/relay.h>

#include "tests/unit/toolkit/forward/forward_fixture.h"

namespace gantry::forward {
namespace {

std::string FrameOf(const std::string& bytes) {
  std::string header;
  for (int shift = 24; shift >= 0; shift -= 8) {
    header += static_cast<char>(bytes.size() >> shift & 0xff);
  }
  return header + bytes;
}

/// The bytes of all frames up to the empty one; with `[cut]` behind them where that is missing.
std::string ReadFrames(const UniqueFd& socket) {
  std::string all;
  for (;;) {
    const std::string header = ReadSome(socket, 4);
    if (header.size() < 4) {
      return all + "[cut]";
    }
    size_t length = 0;
    for (const char byte : header) {
      length = length << 8 | static_cast<unsigned char>(byte);
    }
    if (length == 0) {
      return all;
    }
    const std::string bytes = ReadSome(socket, length);
    all += bytes;
    if (bytes.size() < length) {
      return all + "[cut]";
    }
  }
}

class FramedRelayTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "needs root to become nobody";
    }
    const UniqueFd program(open(GANTRY_FORWARD, O_RDONLY | O_CLOEXEC));
    relay_ = Relay::Start(context_, program, {}, [this](uint16_t port, int error) {
               context_.Log(LogLevel::kInfo, Format("{}: {}", port, error));
             }).value();
    const auto [listener, port] = ListenIn(nullptr, "127.0.0.1");
    client_ = ConnectIn(nullptr, "127.0.0.1", port).first;
    const UniqueFd accepted = AcceptFrom(listener);
    auto ends = BlockingSocketPair(SOCK_STREAM);
    guest_ = std::move(ends->second);
    ASSERT_TRUE(relay_->Take(accepted, ends->first, 80, true));
  }

  void Establish() { ASSERT_TRUE(SendText(guest_, FrameOf(std::string(1, '\0')))); }

  FakeSandboxContext context_;
  std::unique_ptr<Relay> relay_;
  UniqueFd client_;
  UniqueFd guest_;
};

TEST_F(FramedRelayTest, CarriesBytesBothWays) {
  Establish();
  ASSERT_TRUE(SendText(client_, "question"));
  EXPECT_EQ(ReadSome(guest_, 12), FrameOf("question"));
  ASSERT_TRUE(SendText(guest_, FrameOf("an") + FrameOf("swer")));
  EXPECT_EQ(ReadSome(client_, 6), "answer");
}

TEST_F(FramedRelayTest, PutsTogetherWhatComesInPieces) {
  const std::string said = FrameOf(std::string(1, '\0')) + FrameOf("ans") + FrameOf("wer");
  for (size_t i = 0; i + 1 < said.size(); ++i) {
    ASSERT_TRUE(SendText(guest_, said.substr(i, 1)));
  }
  EXPECT_EQ(ReadSome(client_, 5), "answe");
  ASSERT_TRUE(SendText(guest_, said.substr(said.size() - 1)));
  EXPECT_EQ(ReadSome(client_, 1), "r");
}

TEST_F(FramedRelayTest, PassesEachEndByItself) {
  Establish();
  ASSERT_TRUE(SendText(client_, "all of it"));
  ASSERT_EQ(shutdown(client_.get(), SHUT_WR), 0);
  EXPECT_EQ(ReadFrames(guest_), "all of it");
  ASSERT_TRUE(SendText(guest_, FrameOf("answer") + FrameOf("")));
  int error = 0;
  EXPECT_EQ(ReadAll(client_, &error), "answer");
  EXPECT_EQ(error, 0);
  // Both have ended: it lets go of the guest's, too.
  EXPECT_EQ(ReadAll(guest_), "");
}

TEST_F(FramedRelayTest, PassesTheServersEndAndThenWhatTheClientSends) {
  Establish();
  ASSERT_TRUE(SendText(guest_, FrameOf("")));
  EXPECT_EQ(ReadAll(client_), "");
  ASSERT_TRUE(SendText(client_, "late"));
  ASSERT_EQ(shutdown(client_.get(), SHUT_WR), 0);
  EXPECT_EQ(ReadFrames(guest_), "late");
}

TEST_F(FramedRelayTest, LosesNothingOfMuch) {
  constexpr size_t kMuch = size_t{8} << 20;
  Establish();
  std::string up(kMuch, 'u');
  std::string down(kMuch, 'd');
  for (size_t i = 0; i < kMuch; i += 1021) {
    up[i] = static_cast<char>(i);
    down[i] = static_cast<char>(i >> 8);
  }
  std::thread sends_up([&] {
    EXPECT_TRUE(SendText(client_, up));
    shutdown(client_.get(), SHUT_WR);
  });
  std::thread sends_down([&] {
    // Frames that are larger than any buffer, and some of one byte.
    for (size_t at = 0, size = 1; at < kMuch; at += size, size = size == 1 ? 1'000'003 : 1) {
      EXPECT_TRUE(SendText(guest_, FrameOf(down.substr(at, size))));
    }
    EXPECT_TRUE(SendText(guest_, FrameOf("")));
  });
  std::string got_up;
  std::thread reads_up([&] { got_up = ReadFrames(guest_); });
  EXPECT_TRUE(ReadAll(client_) == down);
  for (std::thread* one : {&sends_up, &sends_down, &reads_up}) {
    one->join();
  }
  EXPECT_TRUE(got_up == up);
}

TEST_F(FramedRelayTest, ResetsTheClientOfAStreamThatIsCutOff) {
  Establish();
  ASSERT_TRUE(SendText(guest_, FrameOf("half of it").substr(0, 8)));
  EXPECT_EQ(ReadSome(client_, 4), "half");
  guest_.reset();
  int error = 0;
  EXPECT_EQ(ReadAll(client_, &error), "");
  EXPECT_EQ(error, ECONNRESET) << "it is not taken for the end";
}

TEST_F(FramedRelayTest, SaysWhyTheServerWasNotReached) {
  ASSERT_TRUE(SendText(guest_, FrameOf(std::string(1, ECONNREFUSED)) + FrameOf("")));
  EXPECT_TRUE(context_.WaitForLog(Format("80: {}", ECONNREFUSED)));
  int error = 0;
  EXPECT_EQ(ReadAll(client_, &error), "");
  EXPECT_EQ(error, ECONNRESET);
}

TEST_F(FramedRelayTest, RefusesAFirstFrameThatIsNone) {
  ASSERT_TRUE(SendText(guest_, std::string("\x7f\xff\xff\xff\0", 5)));
  EXPECT_TRUE(context_.WaitForLog(Format("80: {}", ECONNABORTED)));
}

// An engine of an earlier release, with this gantry-forward, says the port and nothing else.
TEST_F(FramedRelayTest, TakesAConnectionOfAnEarlierEngineAsItIs) {
  const UniqueFd control = std::move(*context_.Take("forward-relay"));
  const auto [listener, listens] = ListenIn(nullptr, "127.0.0.1");
  const UniqueFd client = ConnectIn(nullptr, "127.0.0.1", listens).first;
  const UniqueFd accepted = AcceptFrom(listener);
  auto ends = BlockingSocketPair(SOCK_STREAM);
  const int both[] = {accepted.get(), ends->first.get()};
  uint16_t port = 81;
  iovec part{&port, sizeof(port)};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(both))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof(space);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(both));
  std::copy_n(both, 2, reinterpret_cast<int*>(CMSG_DATA(header)));
  ASSERT_EQ(sendmsg(control.get(), &message, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof(port)));
  ASSERT_TRUE(SendText(ends->second, std::string(1, '\0') + "answer"));
  EXPECT_EQ(ReadSome(client, 6), "answer");
}

}  // namespace
}  // namespace gantry::forward
