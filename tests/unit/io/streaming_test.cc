// SPDX-License-Identifier: Apache-2.0
//
// Streams of clients that connect for each of them: what is passed on, how it ends, clients that go
// away and come back, engines that do, and clients that do not keep to the rules.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/pipe.h>

#include "tests/unit/io/client.h"
#include "tests/unit/io/stream_client.h"

namespace gantry::io {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr std::chrono::seconds kEndsWithin{30};

std::string UriOf(const std::string& id) { return "ttrpc+unix:///run/s/1?streaming_id=" + id; }

class StreamingStdio : public IoTest {
 protected:
  StreamingStdio() { options_.heirs_limit = std::chrono::hours(1); }

  std::shared_ptr<ChildProcess> Start(ProcessIo& io, const std::string& script) {
    Stdio stdio = io.Take().value();
    std::vector<std::pair<int, int>> fds;
    int number = 0;
    for (StreamEnd* end : {&stdio.in, &stdio.out, &stdio.err}) {
      if (end->fd) {
        fds.emplace_back(end->fd.get(), number);
      }
      ++number;
    }
    auto child = Shell(script, fds);
    stdio = Stdio();
    io.Started();
    return child;
  }

  const StdioPaths kOut{"", UriOf("c-stdout"), "", false};
  const StdioPaths kInOut{UriOf("c-stdin"), UriOf("c-stdout"), "", false};
};

TEST_F(StreamingStdio, PassesManyBytesAndTheEnd) {
  const std::string data = Pattern(size_t{3} << 20);
  StreamClient out(1);
  StreamClient err(2);
  host_.Connect("c-stdout", out.Take());
  host_.Connect("c-stderr", err.Take());
  auto io = Open({"", UriOf("c-stdout"), UriOf("c-stderr"), false});
  const auto child = Start(*io, "cat " + File("data", data) + "; echo problem >&2");
  ASSERT_TRUE(out.AwaitEnd());
  ASSERT_TRUE(err.AwaitEnd());
  EXPECT_TRUE(out.data() == data);
  EXPECT_EQ(err.data(), "problem\n");
  EXPECT_LE(out.frames().longest_data, kStreamDataBytes);
  EXPECT_TRUE(out.kept_to_the_window());
  EXPECT_TRUE(out.AwaitClosed()) << "by us, when it has answered the end";
  io->Ended();
  EXPECT_TRUE(Drained(*io));
  EXPECT_EQ(io->UnreadBytes(), 0U);
  EXPECT_TRUE(host_.AwaitNames({}));
  EXPECT_THAT(host_.Took(), UnorderedElementsAre(1, 2));
  EXPECT_THAT(host_.Logged(), IsEmpty());
}

TEST_F(StreamingStdio, SendsNoMoreThanIsAllowed) {
  StreamClient out(1, false);
  ASSERT_TRUE(out.Allow(10));
  host_.Connect("c-stdout", out.Take());
  auto io = Open(kOut);
  const auto child = Start(*io, "printf 0123456789abcdefghij");
  ASSERT_TRUE(child->Wait(kEndsWithin));
  io->Ended();
  ASSERT_TRUE(out.AwaitData("0123456789"));
  EXPECT_EQ(io->UnreadBytes(), 11U) << "ten bytes, and the end";
  ASSERT_TRUE(out.Allow(4));
  ASSERT_TRUE(out.AwaitData("0123456789abcd"));
  ASSERT_TRUE(out.Allow(100));
  ASSERT_TRUE(out.AwaitEnd());
  EXPECT_EQ(out.data(), "0123456789abcdefghij");
  EXPECT_GT(io->UnreadBytes(), 0U) << "it has not said that it has read the end";
  out.End();
  EXPECT_TRUE(Drained(*io));
  EXPECT_EQ(io->UnreadBytes(), 0U);
}

TEST_F(StreamingStdio, UsesNoConnectionBeforeTheProcessIsOnRecord) {
  StreamClient out(1);
  host_.Connect("c-stdout", out.Take());
  auto io = Open(kOut);
  host_.Settle();
  EXPECT_TRUE(host_.AwaitNames({"stdout-r", "stdout-w"}));
  EXPECT_THAT(host_.Took(), IsEmpty());
  // The call is undone, and comes again.
  io->Close();
  io = Open(kOut);
  const auto child = Start(*io, "echo said");
  ASSERT_TRUE(out.AwaitEnd());
  EXPECT_EQ(out.data(), "said\n");
  EXPECT_EQ(out.frames().ends, 1);
}

TEST_F(StreamingStdio, AClientMayBeLateGoAwayAndComeBack) {
  auto io = Open(kOut);
  const std::string go = Fifo("go");
  const auto child = Start(*io, "echo early; read x <" + go + "; echo late; exit 3");
  {
    StreamClient first(1);
    host_.Connect("c-stdout", first.Take());
    ASSERT_TRUE(first.AwaitData("early\n"));
  }
  ASSERT_TRUE(host_.AwaitNames({"stdout-r"})) << "what was the first client's has gone";
  Writer(go).Write("go\n");
  EXPECT_EQ(child->Wait(kEndsWithin).value().code(), 3U);
  io->Ended();
  StreamClient second(2);
  host_.Connect("c-stdout", second.Take());
  ASSERT_TRUE(second.AwaitEnd());
  EXPECT_EQ(second.data(), "late\n");
  EXPECT_TRUE(Drained(*io));
}

TEST_F(StreamingStdio, TheNewerOfTwoClientsCounts) {
  auto io = Open(kOut);
  const std::string go = Fifo("go");
  const auto child = Start(*io, "echo one; read x <" + go + "; echo two");
  StreamClient first(1);
  host_.Connect("c-stdout", first.Take());
  ASSERT_TRUE(first.AwaitData("one\n"));
  StreamClient second(2);
  host_.Connect("c-stdout", second.Take());
  EXPECT_TRUE(first.AwaitClosed());
  Writer(go).Write("go\n");
  ASSERT_TRUE(second.AwaitEnd());
  EXPECT_EQ(second.data(), "two\n");
}

TEST_F(StreamingStdio, WhoComesLaterHearsOfTheEnd) {
  auto io = Open(kOut);
  const auto child = Start(*io, "echo all");
  {
    StreamClient first(1);
    host_.Connect("c-stdout", first.Take());
    ASSERT_TRUE(first.AwaitEnd());
    ASSERT_TRUE(first.AwaitClosed());
  }
  io->Ended();
  ASSERT_TRUE(host_.AwaitNames({}));
  Restart(io, kOut);
  io->Started();
  io->Ended();
  EXPECT_TRUE(Drained(*io)) << "there is nobody to wait for";
  StreamClient second(2);
  host_.Connect("c-stdout", second.Take());
  ASSERT_TRUE(second.AwaitEnd());
  EXPECT_EQ(second.data(), "");
  EXPECT_TRUE(second.AwaitClosed());
}

TEST_F(StreamingStdio, CloseLeavesTheRestToAClientThatReads) {
  StreamClient out(1, false);
  host_.Connect("c-stdout", out.Take());
  auto io = Open(kOut);
  const auto child = Start(*io, "echo last words");
  ASSERT_TRUE(child->Wait(kEndsWithin));
  io->Ended();
  ASSERT_TRUE(Eventually([&] { return host_.Took().size() == 1; }));
  host_.Settle();
  relay_->Do([] {});
  io->Close();
  ASSERT_TRUE(out.Allow(100));
  ASSERT_TRUE(out.AwaitEnd());
  EXPECT_EQ(out.data(), "last words\n");
  out.End();
  EXPECT_TRUE(out.AwaitClosed());
  EXPECT_TRUE(host_.AwaitNames({}));
}

TEST_F(StreamingStdio, PassesInputAndItsEnd) {
  StreamClient in(1, false);
  StreamClient out(2);
  host_.Connect("c-stdin", in.Take());
  host_.Connect("c-stdout", out.Take());
  const std::string data = Pattern(size_t{1} << 20);
  auto io = Open(kInOut);
  const auto child = Start(*io, "cat");
  ASSERT_TRUE(in.Write(data));
  in.End();
  ASSERT_TRUE(out.AwaitEnd());
  EXPECT_TRUE(out.data() == data);
  EXPECT_TRUE(in.AwaitClosed());
  EXPECT_EQ(child->Wait(kEndsWithin).value().code(), 0U);
  io->Ended();
  EXPECT_TRUE(host_.AwaitNames({}));
}

uint64_t Granted(StreamClient& client) {
  uint64_t all = 0;
  for (const uint32_t window : client.frames().windows) {
    all += window;
  }
  return all;
}

TEST_F(StreamingStdio, HoldsBackAClientWhoseProcessDoesNotRead) {
  options_.pipe_bytes = 4096;
  StreamClient in(1, false);
  host_.Connect("c-stdin", in.Take());
  auto io = Open(kInOut);
  const std::string go = Fifo("go");
  const auto child = Start(*io, "read x <" + go + "; cat >/dev/null");
  ASSERT_TRUE(in.AwaitWindow(kStreamWindowBytes));
  // All that it may. What is in the pipe has been taken, and of one message, which may be as large
  // as a page of the socket's, a pipe of 4 KiB takes all.
  constexpr uint64_t kMost = 8 * uint64_t{kStreamWindowBytes};
  uint64_t written = 0;
  for (uint64_t may = kStreamWindowBytes; written < may && may < kMost; may = Granted(in)) {
    ASSERT_TRUE(in.Write(Pattern(may - written)));
    written = may;
    host_.Settle();
    relay_->Do([] {});
  }
  EXPECT_LT(Granted(in), kMost);
  Writer(go).Write("go\n");
  EXPECT_TRUE(Eventually([&] { return Granted(in) > written; }));
  in.End();
  EXPECT_EQ(child->Wait(kEndsWithin).value().code(), 0U);
}

TEST_F(StreamingStdio, InputEndsWithCloseIOOnlyWhenTheClientHasGoneToo) {
  auto io = Open(kInOut);
  StreamClient out(9);
  host_.Connect("c-stdout", out.Take());
  const auto child = Start(*io, "cat");
  {
    StreamClient in(1, false);
    host_.Connect("c-stdin", in.Take());
    ASSERT_TRUE(in.Write("one "));
    ASSERT_TRUE(out.AwaitData("one "));
  }
  ASSERT_TRUE(Eventually([&] { return !std::ranges::contains(host_.Names(), "conn-in"); }));
  EXPECT_FALSE(child->Ended());
  {
    StreamClient in(2, false);
    host_.Connect("c-stdin", in.Take());
    ASSERT_TRUE(in.Write("two "));
    io->CloseStdin();
    // It has been called, and more is said.
    ASSERT_TRUE(in.Write("three"));
    ASSERT_TRUE(out.AwaitData("one two three"));
    EXPECT_FALSE(child->Ended());
  }
  EXPECT_EQ(child->Wait(kEndsWithin).value().code(), 0U);
  EXPECT_TRUE(out.AwaitEnd());
}

TEST_F(StreamingStdio, CloseIOEndsTheInputOfNobody) {
  auto io = Open(kInOut);
  const auto child = Start(*io, "cat");
  io->CloseStdin();
  EXPECT_EQ(child->Wait(kEndsWithin).value().code(), 0U);
}

TEST_F(StreamingStdio, AClientThatWritesToNobodyIsLetGo) {
  StreamClient in(1, false);
  host_.Connect("c-stdin", in.Take());
  auto io = Open(kInOut);
  const auto child = Start(*io, "exit 0");
  ASSERT_TRUE(in.AwaitWindow(kStreamWindowBytes));
  ASSERT_TRUE(child->Wait(kEndsWithin));
  io->Ended();
  EXPECT_TRUE(in.AwaitClosed());
  // What containerd waits for before it notices.
  EXPECT_GT(in.frames().windows.size(), 1U);
  EXPECT_EQ(in.frames().ends, 1);
  EXPECT_FALSE(in.Send(DataFrame("x")) && in.Send(DataFrame("x")));
}

TEST_F(StreamingStdio, OneThatBreaksTheRulesLosesItsConnectionAndNothingElse) {
  auto io = Open(kInOut);
  const auto child = Start(*io, "cat");
  const std::string bad[] = {
      DataFrame(std::string(kStreamWindowBytes + 1, 'x')),
      std::string("\xff\xff\xff\xff no frame at all"),
      StreamEndFrame(3) + StreamEndFrame(3).replace(8, 1, "\1"),
  };
  uint64_t number = 0;
  for (const std::string& bytes : bad) {
    StreamClient in(++number, false);
    host_.Connect("c-stdin", in.Take());
    ASSERT_TRUE(in.AwaitWindow(kStreamWindowBytes));
    IgnoreError(Result<bool>(in.Send(bytes)), "it may be closed before all is sent");
    EXPECT_TRUE(in.AwaitClosed());
    StreamClient out(++number, false);
    host_.Connect("c-stdout", out.Take());
    IgnoreError(Result<bool>(out.Send(bytes)), "the same");
    EXPECT_TRUE(out.AwaitClosed());
  }
  StreamClient in(100, false);
  StreamClient out(101);
  host_.Connect("c-stdin", in.Take());
  host_.Connect("c-stdout", out.Take());
  ASSERT_TRUE(in.Write("still here"));
  in.End();
  ASSERT_TRUE(out.AwaitEnd());
  EXPECT_EQ(out.data(), "still here");
  EXPECT_THAT(host_.Logged(), Contains(HasSubstr("c-stdin")));
}

TEST_F(StreamingStdio, NoByteIsLostOrDoubledByEnginesThatComeAndGo) {
  StreamClient in(1, false);
  StreamClient out(2);
  host_.Connect("c-stdin", in.Take());
  host_.Connect("c-stdout", out.Take());
  const std::string data = Pattern(size_t{2} << 20);
  auto io = Open(kInOut);
  const auto child = Start(*io, "cat");
  std::atomic<bool> written = false;
  std::thread client([&] {
    written = in.Write(data);
    in.End();
  });
  for (size_t part = 1; part < 16; ++part) {
    EXPECT_TRUE(out.AwaitBytes(part * (data.size() / 16)));
    host_.Settle();
    Restart(io, kInOut);
    io->Started();
  }
  client.join();
  EXPECT_TRUE(written);
  EXPECT_TRUE(out.AwaitEnd());
  EXPECT_TRUE(out.data() == data);
  EXPECT_TRUE(out.kept_to_the_window());
  EXPECT_EQ(out.frames().ends, 1);
  EXPECT_EQ(child->Wait(kEndsWithin).value().code(), 0U);
  EXPECT_THAT(host_.Took(), ElementsAre(1, 2));
}

TEST_F(StreamingStdio, AConnectionThatIsStoredIsOnlyTakenAgain) {
  StreamClient out(5);
  StreamConnection connection = out.Take();
  UniqueFd second = connection.socket.Duplicate().value();
  host_.Connect("c-stdout", std::move(connection));
  auto io = Open(kOut);
  const std::string go = Fifo("go");
  const auto child = Start(*io, "echo one; read x <" + go + "; echo two");
  ASSERT_TRUE(out.AwaitData("one\n"));
  Restart(io, kOut);
  io->Started();
  // The engine before this one had not said that it has it.
  host_.Connect("c-stdout", {5, 1, std::move(second)});
  EXPECT_TRUE(Eventually([&] { return host_.Took().size() == 2; }));
  Writer(go).Write("go\n");
  ASSERT_TRUE(out.AwaitEnd());
  EXPECT_EQ(out.data(), "one\ntwo\n");
}

TEST_F(StreamingStdio, IsATerminalsToo) {
  StreamClient in(1, false);
  StreamClient out(2);
  host_.Connect("c-stdin", in.Take());
  host_.Connect("c-stdout", out.Take());
  auto io = Open({UriOf("c-stdin"), UriOf("c-stdout"), "", true});
  Terminal terminal;
  ASSERT_TRUE(io->AttachConsole(std::move(terminal.master)));
  io->Started();
  ASSERT_TRUE(in.Write("typed\n"));
  char buffer[100];
  EXPECT_EQ(read(terminal.slave.get(), buffer, sizeof(buffer)), 6);
  EXPECT_EQ(write(terminal.slave.get(), "shown", 5), 5);
  EXPECT_TRUE(out.AwaitData("shown"));
  EXPECT_TRUE(io->Resize({80, 25}));
  terminal.slave.reset();
  io->Ended();
  EXPECT_TRUE(out.AwaitEnd());
  EXPECT_TRUE(in.AwaitClosed());
  EXPECT_TRUE(Drained(*io));
}

TEST_F(StreamingStdio, AnHeirDoesNotHoldUpTheEnd) {
  options_.own_pipes = true;
  options_.heirs_limit = std::chrono::milliseconds(1);
  StreamClient out(1);
  host_.Connect("c-stdout", out.Take());
  auto io = Open(kOut);
  const std::string go = Fifo("go");
  const auto child = Start(*io, "(read x <" + go + ") & echo main; exit 3");
  EXPECT_EQ(child->Wait(kEndsWithin).value().code(), 3U);
  io->Ended();
  EXPECT_TRUE(out.AwaitEnd());
  EXPECT_EQ(out.data(), "main\n");
  EXPECT_TRUE(Drained(*io));
  Writer(go).Write("go\n");
}

}  // namespace
}  // namespace gantry::io
