// SPDX-License-Identifier: Apache-2.0
//
// A terminal that a guest's kernel has: one connection carries both of its ways, in frames.
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/io/client.h"

namespace gantry::io {
namespace {

using ::testing::IsEmpty;

const std::string kLastFrame(4, '\0');

std::string InFrame(const std::string& payload) {
  const auto length = static_cast<uint32_t>(payload.size());
  return std::string{static_cast<char>(length >> 24), static_cast<char>(length >> 16),
                     static_cast<char>(length >> 8), static_cast<char>(length)} +
         payload;
}

class FramedTerminal : public IoTest {
 protected:
  void SetUp() override {
    int fds[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    ours_.reset(fds[0]);
    guest_.reset(fds[1]);
    paths_ = {Fifo("in"), Fifo("out"), "", true};
    // Who waits for it has not seen the end come.
    options_.heirs_limit = std::chrono::hours(1);
  }

  std::unique_ptr<ProcessIo> Attached() {
    auto io = Open(paths_);
    EXPECT_TRUE(
        io->AttachStream(Stream::kStdin, ours_.Duplicate().value(), StreamFraming::kFrames));
    EXPECT_TRUE(io->AttachStream(Stream::kStdout, std::move(ours_), StreamFraming::kFrames));
    io->Started();
    return io;
  }

  void Say(const std::string& bytes) const {
    EXPECT_EQ(send(guest_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  /// What has come to the guest, frames and all; waits until it is `bytes`.
  bool Heard(const std::string& bytes) {
    return Eventually([&] {
      char buffer[256];
      const ssize_t got = recv(guest_.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
      heard_.append(buffer, got > 0 ? static_cast<size_t>(got) : 0);
      return heard_ == bytes;
    });
  }

  /// Behind whatever is still to be read.
  bool IsClosed() const {
    return Eventually([&] {
      char buffer[256];
      return recv(guest_.get(), buffer, sizeof(buffer), MSG_DONTWAIT) == 0;
    });
  }

  UniqueFd ours_;
  UniqueFd guest_;
  StdioPaths paths_;
  std::string heard_;
};

TEST_F(FramedTerminal, PassesBothWaysOnOneConnectionUntilItsOutputEnds) {
  Reader out(paths_.out);
  auto io = Attached();
  Writer client(paths_.in);
  ASSERT_TRUE(client.Write("typed"));
  EXPECT_TRUE(Heard(InFrame("typed")));
  Say(InFrame("typed\r\n") + InFrame("answer\r\n"));
  EXPECT_TRUE(out.AwaitText("typed\r\nanswer\r\n"));
  // Nobody has it open any more, so nobody reads what is typed.
  Say(kLastFrame);
  EXPECT_TRUE(out.AwaitEnd());
  EXPECT_TRUE(IsClosed());
  io->Ended();
  EXPECT_TRUE(host_.AwaitNames({}));
  EXPECT_TRUE(Drained(*io));
  EXPECT_THAT(host_.Logged(), IsEmpty());
}

TEST_F(FramedTerminal, LeavesWhatIsTypedToItsClientUntilItIsOnRecord) {
  Reader out(paths_.out);
  auto io = Open(paths_);
  Writer client(paths_.in);
  ASSERT_TRUE(client.Write("typed early"));
  ASSERT_TRUE(io->AttachStream(Stream::kStdin, ours_.Duplicate().value(), StreamFraming::kFrames));
  ASSERT_TRUE(io->AttachStream(Stream::kStdout, std::move(ours_), StreamFraming::kFrames));
  // Who passes this on would have passed on before what was typed.
  Say(InFrame("screen"));
  ASSERT_TRUE(out.AwaitText("screen"));
  EXPECT_TRUE(Heard(""));
  Restart(io, paths_);
  Say(InFrame("screen"));
  ASSERT_TRUE(out.AwaitText("screenscreen"));
  EXPECT_TRUE(Heard(""));
  io->Started();
  EXPECT_TRUE(Heard(InFrame("typed early")));
}

TEST_F(FramedTerminal, ThatIsMadeAnewGetsWhatWasTyped) {
  Reader out(paths_.out);
  auto io = Open(paths_);
  Writer client(paths_.in);
  ASSERT_TRUE(client.Write("typed early"));
  ASSERT_TRUE(io->AttachStream(Stream::kStdin, ours_.Duplicate().value(), StreamFraming::kFrames));
  ASSERT_TRUE(io->AttachStream(Stream::kStdout, std::move(ours_), StreamFraming::kFrames));
  // As an engine's end: the next one undoes the process, and makes another with other streams.
  io.reset();
  options_.left = host_.Names();
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  ours_.reset(fds[0]);
  guest_.reset(fds[1]);
  io = Attached();
  EXPECT_TRUE(Heard(InFrame("typed early")));
}

TEST_F(FramedTerminal, GoesOnWithoutItsClientsInput) {
  Reader out(paths_.out);
  auto io = Attached();
  {
    Writer client(paths_.in);
    ASSERT_TRUE(client.Write("last"));
    io->CloseStdin();
  }
  EXPECT_TRUE(Heard(InFrame("last") + kLastFrame));
  Say(InFrame("still here"));
  EXPECT_TRUE(out.AwaitText("still here"));
  Say(kLastFrame);
  io->Ended();
  EXPECT_TRUE(out.AwaitEnd());
  EXPECT_TRUE(IsClosed());
}

TEST_F(FramedTerminal, GoesOnInTheMiddleOfAFrameAfterARestart) {
  Reader out(paths_.out);
  auto io = Attached();
  Writer client(paths_.in);
  ASSERT_TRUE(client.Write("one "));
  ASSERT_TRUE(Heard(InFrame("one ")));
  Say(InFrame("screen").substr(0, 7));
  ASSERT_TRUE(out.AwaitText("scr"));
  Restart(io, paths_);
  io->Started();
  Say(InFrame("screen").substr(7));
  ASSERT_TRUE(client.Write("two"));
  EXPECT_TRUE(Heard(InFrame("one ") + InFrame("two")));
  EXPECT_TRUE(out.AwaitText("screen"));
  Say(kLastFrame);
  EXPECT_TRUE(out.AwaitEnd());
  io->Ended();
  EXPECT_TRUE(IsClosed());
  EXPECT_TRUE(host_.AwaitNames({}));
}

TEST_F(FramedTerminal, WhichAnHeirKeepsOpenIsLeftWhenItIsSilent) {
  options_.heirs_limit = std::chrono::milliseconds(1);
  Reader out(paths_.out);
  auto io = Attached();
  Say(InFrame("last words"));
  io->Ended();
  EXPECT_TRUE(Drained(*io));
  EXPECT_TRUE(out.AwaitEnd());
  EXPECT_EQ(out.text(), "last words");
  EXPECT_TRUE(IsClosed());
}

TEST_F(FramedTerminal, IsNoOtherStreamAndNoConsole) {
  auto io = Open({"", "", "", true});
  const auto refused = [&](const Status& attached) {
    EXPECT_FALSE(attached);
    return attached ? Code::kOk : attached.error().code;
  };
  EXPECT_EQ(refused(io->AttachStream(Stream::kStdout, ours_.Duplicate().value())),
            Code::kFailedPrecondition);
  EXPECT_EQ(
      refused(io->AttachStream(Stream::kStderr, ours_.Duplicate().value(), StreamFraming::kFrames)),
      Code::kFailedPrecondition);
  ASSERT_TRUE(io->AttachStream(Stream::kStdin, ours_.Duplicate().value(), StreamFraming::kFrames));
  EXPECT_EQ(refused(io->AttachConsole(Terminal().master)), Code::kFailedPrecondition);
  EXPECT_FALSE(io->OpenConsole(ConsoleKind::kControlling));
  ASSERT_TRUE(io->AttachStream(Stream::kStdout, ours_.Duplicate().value(), StreamFraming::kFrames));
  EXPECT_THAT(host_.Names(),
              ::testing::IsSupersetOf({"stream-in", "frames-in", "stream-out", "frames-out"}));
  auto other = Open({"", "", "", true});
  ASSERT_TRUE(other->AttachConsole(Terminal().master));
  EXPECT_EQ(refused(other->AttachStream(Stream::kStdin, ours_.Duplicate().value(),
                                        StreamFraming::kFrames)),
            Code::kFailedPrecondition);
}

}  // namespace
}  // namespace gantry::io
