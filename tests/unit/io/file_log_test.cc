// SPDX-License-Identifier: Apache-2.0
//
// Log files of the host's: written for the process, and never in its hands.
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <future>
#include <memory>

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

constexpr std::chrono::seconds kWriterEndsWithin{30};
constexpr int kMovedWithinMs = 30'000;

class FileLog : public IoTest {
 protected:
  std::shared_ptr<ChildProcess> Start(ProcessIo& io, const std::string& script) {
    Stdio stdio = io.Take().value();
    auto child = Shell(script, {{stdio.out.fd.get(), 1}, {stdio.err.fd.get(), 2}});
    stdio = Stdio();
    io.Started();
    return child;
  }

  /// The process has ended, and all it wrote is in the file.
  void AwaitAll(ProcessIo& io, ChildProcess& child) {
    EXPECT_EQ(child.Wait(kWriterEndsWithin).value().code(), 0U);
    io.Ended();
    EXPECT_TRUE(Drained(io));
  }

  const StdioPaths paths_{"", "file://" + Path("log"), "", false};
};

TEST_F(FileLog, IsAppendedToInTheProcessesOrder) {
  File("log", "old\n");
  auto io = Open(paths_);
  const auto child = Start(*io, "echo one; echo two >&2; echo three");
  AwaitAll(*io, *child);
  EXPECT_EQ(Contents("log"), "old\none\ntwo\nthree\n");
  EXPECT_TRUE(host_.AwaitNames({}));
}

TEST_F(FileLog, TakesBothOutputsFromOnePipe) {
  auto io = Open(paths_);
  const Stdio stdio = io->Take().value();
  struct stat out{};
  struct stat err{};
  ASSERT_EQ(fstat(stdio.out.fd.get(), &out), 0);
  ASSERT_EQ(fstat(stdio.err.fd.get(), &err), 0);
  EXPECT_TRUE(S_ISFIFO(out.st_mode));
  EXPECT_EQ(out.st_ino, err.st_ino) << "two would not keep their order";
}

TEST_F(FileLog, IsMadeWithItsDirectories) {
  auto io = Open({"", "file://" + Path("a/b/log%20file"), "", false});
  const auto child = Start(*io, "echo out");
  AwaitAll(*io, *child);
  EXPECT_EQ(Contents("a/b/log file"), "out\n");
}

TEST_F(FileLog, IsOutOfTheProcessesReach) {
  File("log", "old\n");
  auto io = Open(paths_);
  const auto child = Start(*io,
                           "echo out; chmod 4755 /proc/self/fd/1; : >/proc/self/fd/1; "
                           "readlink /proc/self/fd/1");
  AwaitAll(*io, *child);
  EXPECT_THAT(Contents("log"), testing::MatchesRegex("old\nout\npipe:.*\n"));
  struct stat info{};
  ASSERT_EQ(stat(Path("log").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0644U);
}

TEST_F(FileLog, ThatCannotBeMadeFailsTheOpening) {
  File("log", "");
  const auto io =
      ProcessIo::Open(*relay_, host_, {"", "file://" + Path("log/below"), "", false}, options_);
  EXPECT_FALSE(io.has_value());
  EXPECT_THAT(host_.Names(), IsEmpty());
}

TEST_F(FileLog, RestartsLoseNothing) {
  const std::string data = Pattern(size_t{8} << 20);
  const std::string file = File("data", data);
  auto io = Open(paths_);
  const auto child = Start(*io, "cat " + file);
  for (size_t part = 1; part <= 3; ++part) {
    ASSERT_TRUE(Eventually([&] { return Contents("log").size() >= part << 20; }));
    Restart(io, paths_);
    io->Started();
  }
  AwaitAll(*io, *child);
  EXPECT_TRUE(Contents("log") == data);
}

TEST_F(FileLog, ARestartBeforeTheProcessHasItsEndsLosesNothing) {
  auto io = Open(paths_);
  io->Take().value();
  EXPECT_THAT(host_.Names(), ElementsAre("stdout-pipe", "stream-out"));
  Restart(io, paths_);
  const auto child = Start(*io, "echo out; echo err >&2");
  AwaitAll(*io, *child);
  EXPECT_EQ(Contents("log"), "out\nerr\n");
}

TEST_F(FileLog, HasAllThatWasSaidBeforeItIsClosed) {
  auto gate = MakePipe().value();
  auto io = Open(paths_);
  Stdio stdio = io->Take().value();
  const auto child =
      Shell("echo main; (read x <&9) & exit 3", {{stdio.out.fd.get(), 1}, {gate.first.get(), 9}});
  stdio = Stdio();
  io->Started();
  EXPECT_EQ(child->Wait(kWriterEndsWithin).value().code(), 3U);
  io->Ended();
  io->Close();
  EXPECT_EQ(Contents("log"), "main\n");
}

TEST_F(FileLog, ThatHangsHoldsUpNoOthersStreams) {
  // Also of the call, which may return when the test has ended.
  const auto hangs = std::make_shared<std::promise<void>>();
  std::promise<void> released;
  const std::shared_future<void> release = released.get_future().share();
  auto to_file = MakePipe().value();
  CopySpec file;
  file.source = std::move(to_file.first);
  file.sink = os::OpenLogFile(Path("log"), 0644).value();
  file.sink_kind = SinkKind::kFile;
  file.on_end = [hangs, release](CopyEnd, uint64_t) {
    hangs->set_value();
    release.wait();
  };
  relay_->Start(std::move(file));
  to_file.second.reset();
  hangs->get_future().wait();
  auto from = MakePipe().value();
  auto to = MakePipe().value();
  ASSERT_TRUE(SetNonblocking(to.first.get(), false));
  CopySpec other;
  other.source = std::move(from.first);
  other.sink = std::move(to.second);
  relay_->Start(std::move(other));
  ASSERT_EQ(write(from.second.get(), "x", 1), 1);
  pollfd moved{to.first.get(), POLLIN, 0};
  EXPECT_EQ(poll(&moved, 1, kMovedWithinMs), 1) << "it waits for the file";
  released.set_value();
}

}  // namespace
}  // namespace gantry::io
