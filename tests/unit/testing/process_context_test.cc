// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <gantry/testing/host_process.h>
#include <gantry/testing/process_context.h>
#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/descriptors/terminal.h>

namespace gantry {
namespace {

TEST(FakeProcessContext, HasTheIdsThatItIsGiven) {
  const FakeProcessContext exec("c1", "e1");
  EXPECT_EQ(exec.container().str(), "c1");
  EXPECT_EQ(exec.exec().str(), "e1");
  EXPECT_EQ(FakeProcessContext("c1").exec().str(), "");
}

TEST(FakeProcessContext, ConnectsItsStreamsToTheTest) {
  FakeProcessContext context("c1");
  ClientStreams client = context.OpenStreams().value();
  {
    const Stdio stdio = context.TakeStdio().value();
    EXPECT_EQ(write(client.in.get(), "in", 2), 2);
    EXPECT_EQ(ReadStream(stdio.in.fd, "in"), "in");
    EXPECT_EQ(write(stdio.out.fd.get(), "out", 3), 3);
    EXPECT_EQ(write(stdio.err.fd.get(), "err", 3), 3);
  }
  // To the end: the context has no copies.
  EXPECT_EQ(ReadStream(client.out), "out");
  EXPECT_EQ(ReadStream(client.err), "err");
  EXPECT_FALSE(context.TakeStdio()->out.fd) << "given away once";
}

TEST(FakeProcessContext, IsBoundToOneProcessUntilTheEngineIsRestarted) {
  FakeProcessContext context("c1");
  const auto one = RunShell("exit 0").value();
  const auto two = RunShell("exit 0").value();
  EXPECT_TRUE(context.Bind(one));
  EXPECT_TRUE(context.Bind(one));
  EXPECT_EQ(context.Bind(two).error().code, Code::kFailedPrecondition);
  context.Exited({3, 1});
  context.Exited({4, 1});
  EXPECT_EQ(context.exited->status, 3U) << "the first report counts";
  context.RestartEngine();
  EXPECT_FALSE(context.exited);
  EXPECT_TRUE(context.Bind(two));
  context.refuse_bind = true;
  EXPECT_EQ(context.Bind(two).error().code, Code::kInternal);
}

TEST(FakeProcessContext, OpensTheSameTerminalAgain) {
  FakeProcessContext context("c1");
  EXPECT_EQ(context.OpenConsole(ConsoleKind::kControlling).error().code, Code::kFailedPrecondition);
  context.stdio.terminal = true;
  UniqueFd first = context.OpenConsole(ConsoleKind::kControlling).value();
  const UniqueFd second = context.OpenConsole(ConsoleKind::kForeign).value();
  struct stat one = {};
  struct stat two = {};
  ASSERT_EQ(fstat(first.get(), &one), 0);
  ASSERT_EQ(fstat(second.get(), &two), 0);
  EXPECT_EQ(one.st_rdev, two.st_rdev);
  EXPECT_EQ(context.console_kind, ConsoleKind::kForeign);
  ASSERT_EQ(write(second.get(), "word", 4), 4);
  EXPECT_EQ(ReadStream(context.console, "word"), "word");
}

TEST(FakeProcessContext, KeepsWhatIsAttached) {
  FakeProcessContext context("c1");
  ASSERT_TRUE(context.AttachConsole(Terminal::Open().value().master, ConsoleKind::kForeign));
  EXPECT_TRUE(context.console);
  auto pipe = MakeBlockingPipe().value();
  ASSERT_TRUE(context.AttachStream(Stream::kStdout, std::move(pipe.first)));
  EXPECT_TRUE(context.attached.contains(Stream::kStdout));
  EXPECT_EQ(context.framings[Stream::kStdout], StreamFraming::kNone);
  ASSERT_TRUE(
      context.AttachStream(Stream::kStderr, std::move(pipe.second), StreamFraming::kFrames));
  EXPECT_EQ(context.framings[Stream::kStderr], StreamFraming::kFrames);
}

TEST(FakeProcessContext, ReadsUntilItsTimeIsOver) {
  const auto pipe = MakeBlockingPipe().value();
  ASSERT_EQ(write(pipe.second.get(), "some", 4), 4);
  EXPECT_EQ(ReadStream(pipe.first, "more", std::chrono::milliseconds(1)), "some");
}

}  // namespace
}  // namespace gantry
