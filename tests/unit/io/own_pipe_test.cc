// SPDX-License-Identifier: Apache-2.0
//
// Outputs of processes whose heirs may outlive them: through pipes of their own.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/pipe.h>

#include "core/os/fifo.h"
#include "core/os/splice.h"
#include "tests/unit/io/client.h"

namespace gantry::io {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::chrono::seconds kOwnerEndsWithin{30};

class OwnPipeStdio : public IoTest {
 protected:
  OwnPipeStdio() {
    options_.own_pipes = true;
    // Nothing is to end by itself.
    options_.heirs_limit = std::chrono::hours(1);
  }

  /// Runs `script` with what `Take` gives, and `gate`, which its heirs wait for, as 9.
  std::shared_ptr<ChildProcess> Start(ProcessIo& io, const std::string& script) {
    Stdio stdio = io.Take().value();
    std::vector<std::pair<int, int>> fds = {{gate_.first.get(), 9}};
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

  void LetHeirsGoOn() { ASSERT_EQ(write(gate_.second.get(), "go\n", 3), 3); }

  std::pair<UniqueFd, UniqueFd> BlockingPipe() {
    auto pipe = MakePipe().value();
    EXPECT_TRUE(SetNonblocking(pipe.first.get(), false));
    return pipe;
  }

  std::pair<UniqueFd, UniqueFd> gate_ = BlockingPipe();
};

/// Says a word, and leaves an heir that says another one when it is let.
constexpr const char* kLeavesAnHeir = "echo main; (read x <&9; echo heir) & exit 3";

TEST_F(OwnPipeStdio, PassesManyBytesAndTheEnd) {
  const std::string data = Pattern(size_t{12} << 20);
  const std::string file = File("data", data);
  Reader out(Fifo("out"));
  Reader err(Fifo("err"));
  auto io = Open({"", Path("out"), Path("err"), false});
  const auto child = Start(*io, "cat " + file + "; echo problem >&2");
  ASSERT_TRUE(out.AwaitEnd());
  ASSERT_TRUE(err.AwaitEnd());
  EXPECT_TRUE(out.text() == data);
  EXPECT_EQ(err.text(), "problem\n");
  EXPECT_TRUE(host_.AwaitNames({}));
}

TEST_F(OwnPipeStdio, TheProcessHasABlockingPipeAndNoPath) {
  Reader out(Fifo("out"), SIZE_MAX, true);
  auto io = Open({"", Path("out"), "", false});
  Stdio stdio = io->Take().value();
  EXPECT_EQ(stdio.out.path, "");
  EXPECT_EQ(fcntl(stdio.out.fd.get(), F_GETFL) & (O_NONBLOCK | O_ACCMODE), O_WRONLY);
  struct stat pipe{};
  struct stat fifo{};
  ASSERT_EQ(fstat(stdio.out.fd.get(), &pipe), 0);
  ASSERT_EQ(stat(Path("out").c_str(), &fifo), 0);
  EXPECT_TRUE(S_ISFIFO(pipe.st_mode));
  EXPECT_FALSE(pipe.st_dev == fifo.st_dev && pipe.st_ino == fifo.st_ino);
  EXPECT_FALSE(stdio.err.fd);
  EXPECT_THAT(host_.Names(), ElementsAre("stdout-pipe", "stdout-r", "stdout-w", "stream-out"));
  EXPECT_FALSE(io->Take().has_value());
}

TEST_F(OwnPipeStdio, AnHeirMayGoOnUntilItEnds) {
  Reader out(Fifo("out"));
  auto io = Open({"", Path("out"), "", false});
  const auto child = Start(*io, kLeavesAnHeir);
  EXPECT_EQ(child->Wait(kOwnerEndsWithin).value().code(), 3U);
  io->Ended();
  ASSERT_TRUE(out.AwaitText("main\n"));
  EXPECT_FALSE(out.at_end());
  LetHeirsGoOn();
  EXPECT_TRUE(Drained(*io));
  ASSERT_TRUE(out.AwaitEnd());
  EXPECT_EQ(out.text(), "main\nheir\n");
  EXPECT_TRUE(host_.AwaitNames({}));
}

TEST_F(OwnPipeStdio, CloseEndsItThoughAnHeirHoldsIt) {
  Reader out(Fifo("out"));
  auto io = Open({"", Path("out"), "", false});
  const auto child = Start(*io, kLeavesAnHeir);
  EXPECT_EQ(child->Wait(kOwnerEndsWithin).value().code(), 3U);
  io->Ended();
  io->Close();
  ASSERT_TRUE(out.AwaitEnd());
  EXPECT_EQ(out.text(), "main\n");
  EXPECT_THAT(host_.Names(), IsEmpty());
}

TEST_F(OwnPipeStdio, CloseLosesNothingOfASlowReaders) {
  // More than the fifo holds by itself, less than fifo and pipe.
  const std::string data = Pattern(300'000);
  const std::string file = File("data", data);
  Reader out(Fifo("out"), SIZE_MAX, true);
  auto io = Open({"", Path("out"), "", false});
  const auto child = Start(*io, "cat " + file + "; (read x <&9) & exit 3");
  EXPECT_EQ(child->Wait(kOwnerEndsWithin).value().code(), 3U);
  io->Ended();
  // Counted twice is what moves meanwhile.
  EXPECT_TRUE(Eventually([&] { return io->UnreadBytes() == data.size(); }));
  io->Close();
  out.Resume();
  ASSERT_TRUE(out.AwaitEnd());
  EXPECT_TRUE(out.text() == data);
}

TEST_F(OwnPipeStdio, EndsWhenItsHeirsSayNothing) {
  options_.heirs_limit = std::chrono::milliseconds(1);
  Reader out(Fifo("out"));
  Reader err(Fifo("err"));
  auto io = Open({"", Path("out"), Path("err"), false});
  const auto child = Start(*io, "echo main; echo problem >&2; (read x <&9; echo heir) & exit 3");
  EXPECT_EQ(child->Wait(kOwnerEndsWithin).value().code(), 3U);
  EXPECT_FALSE(out.at_end());
  io->Ended();
  ASSERT_TRUE(out.AwaitEnd());
  ASSERT_TRUE(err.AwaitEnd());
  EXPECT_EQ(out.text(), "main\n");
  EXPECT_EQ(err.text(), "problem\n");
  EXPECT_TRUE(Drained(*io));
  EXPECT_TRUE(host_.AwaitNames({}));
}

TEST_F(OwnPipeStdio, DoesNotEndByItselfBeforeTheProcess) {
  options_.heirs_limit = std::chrono::milliseconds(1);
  Reader out(Fifo("out"));
  auto io = Open({"", Path("out"), "", false});
  const auto child = Start(*io, "echo one; read x <&9; echo two");
  ASSERT_TRUE(out.AwaitText("one\n"));
  // The relay's timers run in their order: one for the heirs would have run before this.
  std::promise<void> later;
  relay_->Post([&] { relay_->loop().After(2 * options_.heirs_limit, [&] { later.set_value(); }); });
  later.get_future().wait();
  LetHeirsGoOn();
  ASSERT_TRUE(out.AwaitEnd());
  EXPECT_EQ(out.text(), "one\ntwo\n");
}

TEST_F(OwnPipeStdio, WhatIsUnreadIsSaidThoughAnHeirHoldsIt) {
  auto first = std::make_unique<Reader>(Fifo("out"), SIZE_MAX, true);
  auto io = Open({"", Path("out"), "", false});
  const auto child = Start(*io, kLeavesAnHeir);
  EXPECT_EQ(child->Wait(kOwnerEndsWithin).value().code(), 3U);
  io->Ended();
  EXPECT_TRUE(Eventually([&] { return io->UnreadBytes() == 5; }));
  const Reader second(Path("out"));
  EXPECT_TRUE(Eventually([&] { return io->UnreadBytes() == 0; }));
}

TEST_F(OwnPipeStdio, AReaderMayBeReplaced) {
  const std::string data = Pattern(size_t{4} << 20);
  const std::string file = File("data", data);
  auto first = std::make_unique<Reader>(Fifo("out"), size_t{1} << 20);
  auto io = Open({"", Path("out"), "", false});
  const auto child = Start(*io, "cat " + file);
  ASSERT_TRUE(first->AwaitEnd());
  const std::string got = first->text();
  first.reset();
  Reader second(Path("out"));
  ASSERT_TRUE(second.AwaitEnd());
  EXPECT_TRUE(got + second.text() == data);
}

TEST_F(OwnPipeStdio, RestartsLoseNothing) {
  const std::string data = Pattern(size_t{6} << 20);
  const std::string file = File("data", data);
  const StdioPaths paths{"", Fifo("out"), "", false};
  Reader out(paths.out);
  auto io = Open(paths);
  const auto child = Start(*io, "cat " + file + "; echo last; (read x <&9) & exit 3");
  for (size_t part = 1; part <= 5; ++part) {
    ASSERT_TRUE(Eventually([&] { return out.size() >= part << 20; }));
    Restart(io, paths);
    io->Started();
  }
  EXPECT_EQ(child->Wait(kOwnerEndsWithin).value().code(), 3U);
  io->Ended();
  ASSERT_TRUE(Eventually([&] { return out.size() == data.size() + 5; }));
  EXPECT_FALSE(out.at_end());
  Restart(io, paths);
  io->Started();
  io->Ended();
  io->Close();
  ASSERT_TRUE(out.AwaitEnd());
  EXPECT_TRUE(out.text() == data + "last\n");
}

TEST_F(OwnPipeStdio, ARestartBeforeTheProcessHasItsEndsIsNotSeen) {
  const StdioPaths paths{"", Fifo("out"), "", false};
  Reader out(paths.out);
  auto io = Open(paths);
  // What an engine had taken that was killed before it could pass it on.
  io->Take().value();
  Restart(io, paths);
  const auto child = Start(*io, "echo hello");
  ASSERT_TRUE(out.AwaitEnd());
  EXPECT_EQ(out.text(), "hello\n");
  EXPECT_TRUE(host_.AwaitNames({}));
}

TEST_F(OwnPipeStdio, AnotherAttemptTakesThePlaceOfTheFirst) {
  const StdioPaths paths{"", Fifo("out"), "", false};
  Reader out(paths.out);
  auto io = Open(paths);
  io->Take().value();
  io.reset();
  options_.left = host_.Names();
  io = Open(paths);
  const auto child = Start(*io, "echo hello");
  ASSERT_TRUE(out.AwaitEnd());
  EXPECT_EQ(out.text(), "hello\n");
  EXPECT_TRUE(host_.AwaitNames({}));
}

TEST_F(OwnPipeStdio, AProcessThatNeverCameEndsTheStreams) {
  Reader out(Fifo("out"));
  auto io = Open({Fifo("in"), Path("out"), "", false});
  io->Take().value();
  io->Started();
  io->Ended();
  EXPECT_TRUE(Drained(*io));
  EXPECT_TRUE(out.AwaitEnd());
  EXPECT_TRUE(host_.AwaitNames({}));
}

TEST_F(OwnPipeStdio, AFullStoreFailsTheTaking) {
  const UniqueFd reader(open(Fifo("out").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  auto io = Open({"", Path("out"), "", false});
  host_.fail_put = true;
  const auto taken = io->Take();
  ASSERT_FALSE(taken.has_value());
  EXPECT_EQ(taken.error().code, Code::kResourceExhausted);
  io->Close();
  EXPECT_THAT(host_.Names(), IsEmpty());
  char byte = 0;
  EXPECT_EQ(read(reader.get(), &byte, 1), 0) << "a writer was left";
}

TEST_F(OwnPipeStdio, PipesAreGivenToTheirOwner) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "needs root to give a file away";
  }
  options_.uid = 1234;
  options_.gid = 4321;
  Reader out(Fifo("out"));
  auto io = Open({"", Path("out"), "", false});
  const Stdio stdio = io->Take().value();
  struct stat info{};
  ASSERT_EQ(fstat(stdio.out.fd.get(), &info), 0);
  EXPECT_EQ(info.st_uid, 1234U);
  EXPECT_EQ(info.st_gid, 4321U);
}

}  // namespace
}  // namespace gantry::io
