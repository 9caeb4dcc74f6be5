// SPDX-License-Identifier: Apache-2.0
//
// Terminals and attached streams: everything that is copied.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/os/fifo.h"
#include "core/os/poll.h"
#include "tests/unit/io/client.h"

namespace gantry::io {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr size_t kScreens = size_t{10} << 20;

class CopiedStdio : public IoTest {
 protected:
  std::shared_ptr<ChildProcess> StartOn(Terminal& terminal, const std::string& script) {
    const int fd = terminal.slave.get();
    auto child = Shell(script, {{fd, 0}, {fd, 1}, {fd, 2}});
    terminal.slave.reset();
    return child;
  }

  const std::string data_ = Pattern(kScreens);
};

TEST_F(CopiedStdio, TerminalPassesManyBytes) {
  const std::string file = File("data", data_);
  Reader out(Fifo("out"));
  auto io = Open({"", Path("out"), "", true});
  Terminal terminal;
  ASSERT_TRUE(io->AttachConsole(std::move(terminal.master)).has_value());
  const auto child = StartOn(terminal, "cat " + file);
  io->Started();
  ASSERT_TRUE(out.AwaitEnd());
  EXPECT_TRUE(out.text() == data_);
  EXPECT_TRUE(host_.AwaitNames({}));
}

TEST_F(CopiedStdio, TerminalWaitsForASlowReader) {
  const std::string file = File("data", data_);
  Reader out(Fifo("out"), SIZE_MAX, true);
  auto io = Open({"", Path("out"), "", true});
  Terminal terminal;
  ASSERT_TRUE(io->AttachConsole(std::move(terminal.master)).has_value());
  const auto child = StartOn(terminal, "cat " + file);
  const UniqueFd name = os::OpenName(Path("out")).value();
  const UniqueFd end = os::OpenPipeEnd(name.get(), os::PipeEnd::kWrite).value();
  ASSERT_TRUE(Eventually([&] { return os::Poll(end.get(), EPOLLOUT, {}).value() == 0; }));
  EXPECT_FALSE(child->Ended());
  out.Resume();
  ASSERT_TRUE(Eventually([&] { return out.size() == data_.size(); }));
  EXPECT_TRUE(out.text() == data_);
}

TEST_F(CopiedStdio, TerminalGetsInput) {
  Reader out(Fifo("out"));
  auto io = Open({Fifo("in"), Path("out"), "", true});
  Terminal terminal;
  ASSERT_TRUE(io->AttachConsole(std::move(terminal.master)).has_value());
  io->Started();
  const auto child = StartOn(terminal, "head -c 1000000");
  const std::string input = Pattern(1'000'000);
  Writer client(Path("in"));
  ASSERT_TRUE(client.Write(input));
  ASSERT_TRUE(out.AwaitEnd());
  EXPECT_TRUE(out.text() == input);
  EXPECT_TRUE(host_.AwaitNames({}));
}

TEST_F(CopiedStdio, InputOfATerminalIsForTheProcessThatStays) {
  Reader out(Fifo("out"));
  const StdioPaths paths{Fifo("in"), Path("out"), "", true};
  auto undone = Open(paths);
  Writer client(paths.in);
  Terminal lost;
  ASSERT_TRUE(undone->AttachConsole(std::move(lost.master)).has_value());
  ASSERT_TRUE(client.Write("text"));
  undone.reset();
  auto io = Open(paths);
  Terminal terminal;
  ASSERT_TRUE(io->AttachConsole(std::move(terminal.master)).has_value());
  io->Started();
  const auto child = StartOn(terminal, "head -c 4");
  EXPECT_TRUE(out.AwaitText("text"));
}

TEST_F(CopiedStdio, CloseStdinSendsNothingToATerminal) {
  Reader out(Fifo("out"));
  auto io = Open({Fifo("in"), Path("out"), "", true});
  Terminal terminal;
  ASSERT_TRUE(io->AttachConsole(std::move(terminal.master)).has_value());
  io->Started();
  const auto child = StartOn(terminal, "head -c 4; cat");
  Writer client(Path("in"));
  ASSERT_TRUE(client.Write("text"));
  io->CloseStdin();
  client.Close();
  ASSERT_TRUE(out.AwaitText("text"));
  EXPECT_TRUE(host_.AwaitNames({"console", "stdout-r", "stdout-w"}));
  EXPECT_FALSE(child->Ended());
}

TEST_F(CopiedStdio, ATerminalOfItsOwnIsTheSameUntilItsProcessHasIt) {
  Reader out(Fifo("out"));
  const StdioPaths paths{"", Path("out"), "", true};
  auto io = Open(paths);
  auto first = io->OpenConsole(ConsoleKind::kForeign);
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_EQ(write(first->get(), "one ", 4), 4);
  ASSERT_TRUE(out.AwaitText("one "));
  // The engine had the only end that a process could have had.
  first->reset();
  Restart(io, paths);
  const auto again = io->OpenConsole(ConsoleKind::kForeign);
  ASSERT_TRUE(again) << again.error().message;
  ASSERT_EQ(write(again->get(), "two", 3), 3);
  EXPECT_TRUE(out.AwaitText("one two"));
  io->Started();
  EXPECT_TRUE(host_.AwaitNames({"console-foreign", "stdout-r", "stdout-w"}));
  EXPECT_EQ(io->OpenConsole(ConsoleKind::kForeign).error().code, Code::kFailedPrecondition);
}

TEST_F(CopiedStdio, ATerminalOfItsOwnGoesWithItsProcess) {
  Reader out(Fifo("out"));
  auto io = Open({"", Path("out"), "", true});
  auto replica = io->OpenConsole(ConsoleKind::kControlling);
  ASSERT_TRUE(replica) << replica.error().message;
  const int fd = replica->get();
  const auto child = Shell("echo on", {{fd, 0}, {fd, 1}, {fd, 2}});
  replica->reset();
  io->Started();
  EXPECT_TRUE(out.AwaitEnd());
  EXPECT_EQ(out.text(), "on\r\n");
  EXPECT_TRUE(host_.AwaitNames({}));
}

TEST_F(CopiedStdio, OnlyAProcessWithATerminalHasOneMade) {
  auto io = Open({"", "", "", false});
  EXPECT_EQ(io->OpenConsole(ConsoleKind::kForeign).error().code, Code::kFailedPrecondition);
}

TEST_F(CopiedStdio, ResizeReachesTheTerminalAlsoFromBefore) {
  auto io = Open({"", "", "", true});
  ASSERT_TRUE(io->Resize({80, 25}).has_value());
  Terminal terminal;
  ASSERT_TRUE(io->AttachConsole(std::move(terminal.master)).has_value());
  winsize size{};
  ASSERT_EQ(ioctl(terminal.slave.get(), TIOCGWINSZ, &size), 0);
  EXPECT_EQ(size.ws_col, 80);
  EXPECT_EQ(size.ws_row, 25);
  ASSERT_TRUE(io->Resize({132, 50}).has_value());
  ASSERT_EQ(ioctl(terminal.slave.get(), TIOCGWINSZ, &size), 0);
  EXPECT_EQ(size.ws_col, 132);
}

TEST_F(CopiedStdio, EndedTerminalIsDrainedThoughOthersKeepItOpen) {
  Reader out(Fifo("out"));
  auto io = Open({Fifo("in"), Path("out"), "", true});
  Terminal terminal;
  ASSERT_TRUE(io->AttachConsole(std::move(terminal.master)).has_value());
  io->Started();
  const std::string last = Pattern(3000);
  ASSERT_EQ(write(terminal.slave.get(), last.data(), last.size()), 3000);
  io->Ended();
  ASSERT_TRUE(Drained(*io));
  ASSERT_TRUE(out.AwaitEnd());
  EXPECT_TRUE(out.text() == last);
  EXPECT_TRUE(host_.AwaitNames({}));
}

TEST_F(CopiedStdio, ConsoleMayComeAfterTheEndOfAShortProcess) {
  Reader out(Fifo("out"));
  auto io = Open({Fifo("in"), Path("out"), "", true});
  Terminal terminal;
  ASSERT_EQ(write(terminal.slave.get(), "quick", 5), 5);
  io->Ended();
  ASSERT_TRUE(io->AttachConsole(std::move(terminal.master)).has_value());
  io->Started();
  ASSERT_TRUE(Drained(*io));
  ASSERT_TRUE(out.AwaitEnd());
  EXPECT_EQ(out.text(), "quick");
  EXPECT_TRUE(host_.AwaitNames({}));
}

TEST_F(CopiedStdio, ATerminalWithoutAConsoleEndsWithItsProcess) {
  Reader out(Fifo("out"));
  auto io = Open({Fifo("in"), Path("out"), "", true});
  io->Started();
  EXPECT_FALSE(out.at_end());
  io->Ended();
  EXPECT_TRUE(out.AwaitEnd());
  EXPECT_TRUE(host_.AwaitNames({}));
}

TEST_F(CopiedStdio, DrainedComesAfterTheLastByteOnly) {
  const std::string file = File("data", Pattern(size_t{1} << 20));
  Reader out(Fifo("out"), SIZE_MAX, true);
  auto io = Open({"", Path("out"), "", true});
  Terminal terminal;
  ASSERT_TRUE(io->AttachConsole(std::move(terminal.master)).has_value());
  const auto child = StartOn(terminal, "cat " + file);
  const auto drained = std::make_shared<std::atomic<bool>>(false);
  io->WhenDrained([drained] { *drained = true; });
  const UniqueFd name = os::OpenName(Path("out")).value();
  const UniqueFd end = os::OpenPipeEnd(name.get(), os::PipeEnd::kWrite).value();
  ASSERT_TRUE(Eventually([&] { return os::Poll(end.get(), EPOLLOUT, {}).value() == 0; }));
  EXPECT_FALSE(drained->load());
  EXPECT_GT(io->UnreadBytes(), 1U);
  // Delete does not wait for ever.
  io->Close();
  EXPECT_TRUE(drained->load());
  EXPECT_THAT(host_.Names(), IsEmpty());
}

TEST_F(CopiedStdio, TerminalWithoutStdoutIsNotBlocked) {
  const std::string file = File("data", data_);
  auto io = Open({"", "", "", true});
  Terminal terminal;
  ASSERT_TRUE(io->AttachConsole(std::move(terminal.master)).has_value());
  const auto child = StartOn(terminal, "cat " + file);
  EXPECT_EQ(child->Wait(std::chrono::seconds(10)).value().code(), 0U);
  io->Ended();
  EXPECT_TRUE(Drained(*io));
  EXPECT_THAT(host_.Logged(), IsEmpty());
}

TEST_F(CopiedStdio, TerminalGoesToALogFile) {
  const std::string file = File("data", data_);
  File("log", "old\n");
  auto io = Open({"", "file://" + Path("log"), "", true});
  Terminal terminal;
  ASSERT_TRUE(io->AttachConsole(std::move(terminal.master)).has_value());
  const auto child = StartOn(terminal, "cat " + file);
  EXPECT_EQ(child->Wait(std::chrono::seconds(10)).value().code(), 0U);
  io->Ended();
  ASSERT_TRUE(Drained(*io));
  EXPECT_TRUE(Contents("log") == "old\n" + data_);
  EXPECT_TRUE(host_.AwaitNames({}));
}

TEST_F(CopiedStdio, FullLogFileDropsAndSaysSo) {
  const std::string file = File("data", Pattern(100'000));
  auto io = Open({"", "file:///dev/full", "", true});
  Terminal terminal;
  ASSERT_TRUE(io->AttachConsole(std::move(terminal.master)).has_value());
  const auto child = StartOn(terminal, "cat " + file);
  EXPECT_EQ(child->Wait(std::chrono::seconds(10)).value().code(), 0U);
  io->Ended();
  ASSERT_TRUE(Drained(*io));
  EXPECT_THAT(host_.Logged(),
              ElementsAre("100000 bytes of output were dropped: nobody takes them"));
}

TEST_F(CopiedStdio, RestartsLoseNothing) {
  const std::string file = File("data", data_);
  const StdioPaths paths{Fifo("in"), Fifo("out"), "", true};
  Reader out(paths.out);
  auto io = Open(paths);
  Terminal terminal;
  ASSERT_TRUE(io->AttachConsole(std::move(terminal.master)).has_value());
  io->Started();
  const auto child = StartOn(terminal, "dd bs=1 count=5 2>/dev/null; cat " + file);
  for (size_t part = 1; part <= 5; ++part) {
    Writer client(paths.in);
    ASSERT_TRUE(client.Write("x"));
    ASSERT_TRUE(Eventually([&] { return out.size() >= (part == 5 ? size_t{1} << 20 : part); }));
    Restart(io, paths);
    io->Started();
  }
  EXPECT_EQ(child->Wait(std::chrono::seconds(10)).value().code(), 0U);
  io->Ended();
  ASSERT_TRUE(out.AwaitEnd());
  EXPECT_TRUE(out.text() == "xxxxx" + data_);
  EXPECT_TRUE(host_.AwaitNames({}));
}

TEST_F(CopiedStdio, RestartsLoseNothingOfALogFile) {
  const std::string file = File("data", data_);
  const StdioPaths paths{"", "file://" + Path("log"), "", true};
  auto io = Open(paths);
  Terminal terminal;
  ASSERT_TRUE(io->AttachConsole(std::move(terminal.master)).has_value());
  const auto child = StartOn(terminal, "cat " + file);
  for (size_t part = 1; part <= 3; ++part) {
    ASSERT_TRUE(Eventually([&] { return Contents("log").size() >= part << 20; }));
    Restart(io, paths);
  }
  EXPECT_EQ(child->Wait(std::chrono::seconds(10)).value().code(), 0U);
  io->Ended();
  ASSERT_TRUE(Drained(*io));
  EXPECT_TRUE(Contents("log") == data_);
}

TEST_F(CopiedStdio, ConsoleIsAttachedOnceAndOnlyToATerminal) {
  auto plain = Open({});
  EXPECT_FALSE(plain->AttachConsole(Terminal().master).has_value());
  auto io = Open({"", "", "", true});
  Terminal terminal;
  ASSERT_TRUE(io->AttachConsole(std::move(terminal.master)).has_value());
  const auto again = io->AttachConsole(Terminal().master);
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().code, Code::kFailedPrecondition);
  EXPECT_FALSE(io->AttachStream(Stream::kStdout, Terminal().master).has_value());
}

struct Socket {
  Socket() {
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0) {
      ours.reset(fds[0]);
      theirs.reset(fds[1]);
    }
  }

  UniqueFd ours;
  UniqueFd theirs;
};

TEST_F(CopiedStdio, AttachedStreamsPassManyBytesBothWays) {
  const StdioPaths paths{Fifo("in"), Fifo("out"), Fifo("err"), false};
  Reader out(paths.out);
  Reader err(paths.err);
  auto io = Open(paths);
  Socket in_socket;
  Socket out_socket;
  ASSERT_TRUE(io->AttachStream(Stream::kStdin, std::move(in_socket.ours)).has_value());
  ASSERT_TRUE(io->AttachStream(Stream::kStdout, std::move(out_socket.ours)).has_value());
  const auto child = Shell("cat", {{in_socket.theirs.get(), 0}, {out_socket.theirs.get(), 1}});
  in_socket.theirs.reset();
  out_socket.theirs.reset();
  io->Started();
  // stderr is nobody's now.
  EXPECT_TRUE(err.AwaitEnd());
  Writer client(paths.in);
  ASSERT_TRUE(client.Write(data_));
  io->CloseStdin();
  client.Close();
  ASSERT_TRUE(out.AwaitEnd());
  EXPECT_TRUE(out.text() == data_);
  EXPECT_TRUE(host_.AwaitNames({}));
}

TEST_F(CopiedStdio, AttachedStreamsGoOnAfterARestart) {
  const StdioPaths paths{"", Fifo("out"), "", false};
  Reader out(paths.out);
  auto io = Open(paths);
  Socket socket;
  ASSERT_TRUE(io->AttachStream(Stream::kStdout, std::move(socket.ours)).has_value());
  io->Started();
  ASSERT_EQ(write(socket.theirs.get(), "one ", 4), 4);
  ASSERT_TRUE(out.AwaitText("one "));
  Restart(io, paths);
  ASSERT_EQ(write(socket.theirs.get(), "two", 3), 3);
  ASSERT_TRUE(out.AwaitText("one two"));
  // The guest's process has ended, its last words are still on their way.
  io->Ended();
  ASSERT_EQ(write(socket.theirs.get(), "!", 1), 1);
  socket.theirs.reset();
  ASSERT_TRUE(Drained(*io));
  ASSERT_TRUE(out.AwaitEnd());
  EXPECT_EQ(out.text(), "one two!");
}

TEST_F(CopiedStdio, AStreamMayComeAfterTheEndOfAShortProcess) {
  Reader out(Fifo("out"));
  auto io = Open({"", Path("out"), "", false});
  Socket socket;
  ASSERT_EQ(write(socket.theirs.get(), "quick", 5), 5);
  socket.theirs.reset();
  io->Ended();
  ASSERT_TRUE(io->AttachStream(Stream::kStdout, std::move(socket.ours)).has_value());
  io->Started();
  ASSERT_TRUE(out.AwaitEnd());
  EXPECT_EQ(out.text(), "quick");
}

TEST_F(CopiedStdio, AttachedStreamWithoutStdinSeesTheEnd) {
  auto io = Open({});
  Socket socket;
  ASSERT_TRUE(io->AttachStream(Stream::kStdin, std::move(socket.ours)).has_value());
  io->Started();
  char byte = 0;
  EXPECT_EQ(read(socket.theirs.get(), &byte, 1), 0);
  EXPECT_TRUE(host_.AwaitNames({}));
}

TEST_F(CopiedStdio, TwoStreamsShareALogFile) {
  auto io = Open({"", "file://" + Path("log"), "", false});
  Socket out_socket;
  Socket err_socket;
  ASSERT_TRUE(io->AttachStream(Stream::kStdout, std::move(out_socket.ours)).has_value());
  ASSERT_TRUE(io->AttachStream(Stream::kStderr, std::move(err_socket.ours)).has_value());
  ASSERT_EQ(write(out_socket.theirs.get(), "out\n", 4), 4);
  ASSERT_TRUE(Eventually([&] { return Contents("log") == "out\n"; }));
  ASSERT_EQ(write(err_socket.theirs.get(), "err\n", 4), 4);
  ASSERT_TRUE(Eventually([&] { return Contents("log") == "out\nerr\n"; }));
  io->Ended();
  out_socket.theirs.reset();
  err_socket.theirs.reset();
  EXPECT_TRUE(Drained(*io));
}

}  // namespace
}  // namespace gantry::io
