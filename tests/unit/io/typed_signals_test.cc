// SPDX-License-Identifier: Apache-2.0
//
// Terminals that are nobody's controlling terminal here: what makes a signal on its
// way in. The terminals have NOFLSH, without which the kernel throws away what was
// typed before such a character.
#include "core/io/typed_signals.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/pipe.h>

#include "core/os/splice.h"
#include "tests/unit/io/client.h"

namespace gantry::io {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr tcflag_t kKeys = ISIG | NOFLSH;
/// What a process has not read; some more is on its way to it then.
constexpr size_t kTerminalHolds = 4095;

class ForeignConsole : public IoTest {
 protected:
  ForeignConsole() {
    fcntl(terminal_.slave.get(), F_SETFL, O_RDWR | O_NONBLOCK);
    Set(kKeys);
  }

  /// As the process in the sandbox does.
  void Set(tcflag_t local, cc_t interrupt = 3, cc_t quit = 28) {
    termios settings{};
    ASSERT_EQ(tcgetattr(terminal_.slave.get(), &settings), 0);
    settings.c_lflag = local;
    settings.c_cc[VINTR] = interrupt;
    settings.c_cc[VQUIT] = quit;
    settings.c_cc[VSUSP] = 26;
    settings.c_cc[VLNEXT] = 22;
    ASSERT_EQ(tcsetattr(terminal_.slave.get(), TCSANOW, &settings), 0);
  }

  void Begin(ConsoleKind kind = ConsoleKind::kForeign) {
    paths_ = {Fifo("in"), "", "", true};
    io_ = Open(paths_);
    ASSERT_TRUE(io_->AttachConsole(terminal_.master.Duplicate().value(), kind));
    io_->Started();
    client_.emplace(paths_.in);
  }

  /// The engine is killed, and the next one goes on.
  void GoOn() {
    Restart(io_, paths_);
    io_->Started();
  }

  void Type(std::string_view text) { ASSERT_TRUE(client_->Write(text)); }

  /// What the process has read when it has read that much.
  std::string Take(size_t bytes) {
    std::string text;
    Eventually([&] {
      char buffer[4096];
      const ssize_t got = read(terminal_.slave.get(), buffer, std::min(sizeof(buffer), bytes));
      if (got > 0) {
        text.append(buffer, static_cast<size_t>(got));
        bytes -= static_cast<size_t>(got);
      }
      return bytes == 0;
    });
    return text;
  }

  /// Typed, and not moved yet.
  size_t Waiting() {
    for (const StoredFd& stored : host_.Copies()) {
      if (stored.name == "stdin-r") {
        return os::BytesQueued(stored.fd.get()).value();
      }
    }
    return 0;
  }

  bool AwaitSignals(size_t count) {
    return Eventually([&] { return host_.Signals().size() >= count; });
  }

  Terminal terminal_;
  StdioPaths paths_;
  std::unique_ptr<ProcessIo> io_;
  std::optional<Writer> client_;
};

TEST_F(ForeignConsole, TellsEachSignalOfOneChunkInOrder) {
  Begin();
  Type(
      "one\x03two\x1cthree\x1a\x03"
      "four");
  EXPECT_EQ(Take(15), "onetwothreefour");
  EXPECT_THAT(host_.Signals(), ElementsAre(SIGINT, SIGQUIT, SIGTSTP, SIGINT));
}

TEST_F(ForeignConsole, MovesNothingThatFollowsBeforeTheSignalIsTold) {
  std::vector<size_t> waiting;
  host_.on_signal = [&] { waiting.push_back(Waiting()); };
  paths_ = {Fifo("in"), "", "", true};
  io_ = Open(paths_);
  ASSERT_TRUE(io_->AttachConsole(terminal_.master.Duplicate().value(), ConsoleKind::kForeign));
  client_.emplace(paths_.in);
  Type(
      "before\x03"
      "between\x1a"
      "after");
  EXPECT_EQ(Waiting(), 20U) << "it has not been started";
  io_->Started();
  EXPECT_EQ(Take(18), "beforebetweenafter");
  // Each is noted under a lock after `on_signal`, which orders the two threads.
  ASSERT_TRUE(AwaitSignals(2));
  EXPECT_THAT(waiting, ElementsAre(13, 5));
}

TEST_F(ForeignConsole, LosesNothingThatIsSaidToTheSignal) {
  constexpr size_t kRounds = 100;
  Set(ISIG);
  host_.on_signal = [&] { EXPECT_EQ(write(terminal_.slave.get(), "word.", 5), 5); };
  paths_ = {Fifo("in"), Fifo("out"), "", true};
  Reader out(paths_.out);
  io_ = Open(paths_);
  ASSERT_TRUE(io_->AttachConsole(terminal_.master.Duplicate().value(), ConsoleKind::kForeign));
  io_->Started();
  client_.emplace(paths_.in);
  for (size_t round = 1; round <= kRounds; ++round) {
    Type("\x03");
    ASSERT_TRUE(Eventually([&] { return out.size() == 5 * round; })) << "round " << round;
  }
}

TEST_F(ForeignConsole, WithoutIsigEverythingPasses) {
  Set(0);
  Begin();
  Type(
      "a\x03"
      "b\x1c"
      "c\x1a");
  EXPECT_EQ(Take(6),
            "a\x03"
            "b\x1c"
            "c\x1a");
  EXPECT_THAT(host_.Signals(), IsEmpty());
}

TEST_F(ForeignConsole, TheModeOfTheMomentCounts) {
  Begin();
  Type("a\x03");
  EXPECT_EQ(Take(1), "a");
  ASSERT_TRUE(AwaitSignals(1));
  Set(0);
  Type("b\x03");
  EXPECT_EQ(Take(2), "b\x03");
  Set(kKeys);
  Type(
      "c\x03"
      "d");
  EXPECT_EQ(Take(2), "cd");
  EXPECT_THAT(host_.Signals(), ElementsAre(SIGINT, SIGINT));
}

TEST_F(ForeignConsole, TheSettingsNameTheCharacters) {
  Set(kKeys, 'x', _POSIX_VDISABLE);
  Begin();
  Type(std::string_view("a\x03x\x1c\0b", 6));
  EXPECT_EQ(Take(5), std::string("a\x03\x1c\0b", 5));
  EXPECT_THAT(host_.Signals(), ElementsAre(SIGINT));
}

TEST_F(ForeignConsole, WhatIsQuotedMakesNoSignal) {
  Set(kKeys | ICANON | IEXTEN);
  Begin();
  Type("a\x16\x03\n");
  EXPECT_EQ(Take(3), "a\x03\n");
  Type("b\x16");
  ASSERT_TRUE(Eventually([&] { return Waiting() == 0; }));
  Type("\x03\n");
  EXPECT_EQ(Take(3), "b\x03\n");
  EXPECT_THAT(host_.Signals(), IsEmpty());
  Type("\x03\n");
  EXPECT_EQ(Take(1), "\n");
  EXPECT_THAT(host_.Signals(), ElementsAre(SIGINT));
}

TEST_F(ForeignConsole, ASignalWaitsBehindWhatTheTerminalHasNoRoomFor) {
  Begin();
  const std::string much(100'000, 'x');
  Type(much +
       "\x03"
       "end");
  ASSERT_TRUE(
      Eventually([&] { return os::BytesQueued(terminal_.slave.get()).value() == kTerminalHolds; }));
  EXPECT_GT(Waiting(), 4U);
  EXPECT_THAT(host_.Signals(), IsEmpty());
  EXPECT_TRUE(Take(much.size() + 3) == much + "end");
  EXPECT_THAT(host_.Signals(), ElementsAre(SIGINT));
}

TEST_F(ForeignConsole, TheNextEngineGoesOn) {
  Begin();
  Type("a\x03");
  EXPECT_EQ(Take(1), "a");
  ASSERT_TRUE(AwaitSignals(1));
  EXPECT_THAT(host_.Names(), Contains("console-foreign"));
  GoOn();
  Type(
      "b\x03"
      "c");
  EXPECT_EQ(Take(2), "bc");
  ASSERT_TRUE(io_->Resize({80, 25}));
  EXPECT_THAT(host_.Signals(), ElementsAre(SIGINT, SIGINT, SIGWINCH));
}

TEST_F(ForeignConsole, RestartsLoseNeitherBytesNorSignals) {
  Begin();
  std::string typed;
  std::string wanted;
  for (int i = 0; i < 200; ++i) {
    typed += std::string(1000, static_cast<char>('a' + i % 26)) + "\x03";
    wanted += std::string(1000, static_cast<char>('a' + i % 26));
  }
  Type(typed);
  std::string text;
  for (int part = 0; part < 4; ++part) {
    text += Take(wanted.size() / 5);
    // The rest waits: some of it in the fifo, with its signals.
    EXPECT_THAT(host_.Signals(), Not(SizeIs(200)));
    GoOn();
  }
  text += Take(wanted.size() / 5);
  EXPECT_TRUE(text == wanted);
  EXPECT_TRUE(AwaitSignals(200));
  EXPECT_THAT(host_.Signals(), SizeIs(200));
  EXPECT_THAT(host_.Signals(), Each(SIGINT));
}

TEST_F(ForeignConsole, WhatAnOlderEngineStoredIsAControllingTerminal) {
  Begin(ConsoleKind::kControlling);
  GoOn();
  Type(
      "a\x03"
      "b");
  EXPECT_EQ(Take(2), "ab");
  ASSERT_TRUE(io_->Resize({80, 25}));
  EXPECT_THAT(host_.Signals(), IsEmpty());
}

TEST_F(ForeignConsole, IsTheOneThatAnOlderEngineStoredTwice) {
  Begin();
  for (StoredFd& stored : host_.Copies()) {
    if (stored.name == "console-foreign") {
      std::vector<StoredFd> again;
      again.push_back({"console", std::move(stored.fd)});
      ASSERT_TRUE(host_.Put(std::move(again)));
    }
  }
  GoOn();
  EXPECT_THAT(host_.Names(), Not(Contains("console")));
  Type("a\x03");
  EXPECT_EQ(Take(1), "a");
  EXPECT_TRUE(AwaitSignals(1));
}

TEST_F(ForeignConsole, AControllingTerminalTellsNothing) {
  Begin(ConsoleKind::kControlling);
  EXPECT_THAT(host_.Names(), Not(Contains("console-foreign")));
  Type(
      "a\x03"
      "b");
  EXPECT_EQ(Take(2), "ab");
  ASSERT_TRUE(io_->Resize({80, 25}));
  EXPECT_THAT(host_.Signals(), IsEmpty());
}

TEST_F(ForeignConsole, EachResizeIsTold) {
  paths_ = {Fifo("in"), "", "", true};
  io_ = Open(paths_);
  ASSERT_TRUE(io_->Resize({80, 25}));
  ASSERT_TRUE(io_->AttachConsole(terminal_.master.Duplicate().value(), ConsoleKind::kForeign));
  EXPECT_THAT(host_.Signals(), IsEmpty()) << "it begins with that size";
  winsize size{};
  host_.on_signal = [&] { ioctl(terminal_.slave.get(), TIOCGWINSZ, &size); };
  ASSERT_TRUE(io_->Resize({132, 50}));
  EXPECT_EQ(size.ws_col, 132) << "it was set before";
  ASSERT_TRUE(io_->Resize({132, 50}));
  EXPECT_THAT(host_.Signals(), ElementsAre(SIGWINCH, SIGWINCH));
}

TEST_F(ForeignConsole, NothingIsLeftOfItInTheEnd) {
  Begin();
  Type("a\x03");
  ASSERT_TRUE(AwaitSignals(1));
  client_.reset();
  io_->CloseStdin();
  io_->Ended();
  EXPECT_TRUE(Drained(*io_));
  EXPECT_TRUE(host_.AwaitNames({}));
}

TEST_F(ForeignConsole, PartsOfWhatWasSeenMayMove) {
  auto [from, to] = MakePipe().value();
  const auto typed = TypedSignals::Make().value();
  EXPECT_TRUE(typed->Peek(from.get(), terminal_.master.get()).value().would_block);
  ASSERT_EQ(write(to.get(),
                  "ab\x03"
                  "cd",
                  5),
            5);
  EXPECT_EQ(typed->Peek(from.get(), terminal_.master.get()).value().bytes, 3U);
  EXPECT_EQ(os::BytesQueued(from.get()).value(), 5U) << "it only looks";
  EXPECT_EQ(typed->Moved(1), 0);
  EXPECT_EQ(typed->Moved(2), SIGINT);
  to.reset();
  char buffer[5];
  ASSERT_EQ(read(from.get(), buffer, sizeof(buffer)), 5);
  EXPECT_TRUE(typed->Peek(from.get(), terminal_.master.get()).value().end);
}

}  // namespace
}  // namespace gantry::io
