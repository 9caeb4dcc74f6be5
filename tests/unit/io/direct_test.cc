// SPDX-License-Identifier: Apache-2.0
//
// Fifos that are handed to the process itself.
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
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr size_t kMany = size_t{12} << 20;

class DirectStdio : public IoTest {
 protected:
  /// Runs `script` with what `Take` gives, and lets the engine's ends go.
  std::shared_ptr<ChildProcess> Start(ProcessIo& io, const std::string& script,
                                      std::vector<std::pair<int, int>> fds = {}) {
    Stdio stdio = io.Take().value();
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

  const std::string data_ = Pattern(kMany);
};

TEST_F(DirectStdio, PassesManyBytesAndTheEnd) {
  const std::string file = File("data", data_);
  Reader out(Fifo("out"));
  Reader err(Fifo("err"));
  auto io = Open({"", Path("out"), Path("err"), false});
  const auto child = Start(*io, "cat " + file + "; echo problem >&2");
  ASSERT_TRUE(out.AwaitEnd());
  ASSERT_TRUE(err.AwaitEnd());
  EXPECT_TRUE(out.text() == data_);
  EXPECT_EQ(err.text(), "problem\n");
  EXPECT_TRUE(host_.AwaitNames({}));
}

TEST_F(DirectStdio, TheProcessHasAWideBlockingFifo) {
  Reader out(Fifo("out"), SIZE_MAX, true);
  auto io = Open({"", Path("out"), "", false});
  Stdio stdio = io->Take().value();
  EXPECT_EQ(stdio.out.path, Path("out"));
  EXPECT_EQ(fcntl(stdio.out.fd.get(), F_GETPIPE_SZ), 256 << 10);
  EXPECT_EQ(fcntl(stdio.out.fd.get(), F_GETFL) & (O_NONBLOCK | O_ACCMODE), O_WRONLY);
  EXPECT_FALSE(stdio.in.fd);
  EXPECT_FALSE(io->Take().has_value());
}

TEST_F(DirectStdio, TheEndComesWithTheLastHeir) {
  auto gate = MakePipe().value();
  ASSERT_TRUE(SetNonblocking(gate.first.get(), false));
  std::promise<void> drained;
  const std::future<void> told = drained.get_future();
  Reader out(Fifo("out"));
  auto io = Open({"", Path("out"), "", false});
  const auto child =
      Start(*io, "echo main; (read x <&9; echo heir) & exit 3", {{gate.first.get(), 9}});
  gate.first.reset();
  EXPECT_EQ(child->Wait(std::chrono::seconds(10)).value().code(), 3U);
  io->Ended();
  io->WhenDrained([&] { drained.set_value(); });
  ASSERT_TRUE(out.AwaitText("main\n"));
  EXPECT_EQ(told.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  EXPECT_FALSE(out.at_end());
  EXPECT_THAT(host_.Names(), ElementsAre("stdout-r"));
  ASSERT_EQ(write(gate.second.get(), "go\n", 3), 3);
  ASSERT_TRUE(out.AwaitEnd());
  EXPECT_EQ(told.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  EXPECT_EQ(out.text(), "main\nheir\n");
  EXPECT_TRUE(host_.AwaitNames({}));
}

TEST_F(DirectStdio, AReaderMayBeReplaced) {
  const std::string file = File("data", data_);
  std::string got;
  auto first = std::make_unique<Reader>(Fifo("out"), size_t{1} << 20);
  auto io = Open({"", Path("out"), "", false});
  const auto child = Start(*io, "cat " + file);
  ASSERT_TRUE(first->AwaitEnd());
  got = first->text();
  first.reset();
  Reader second(Path("out"));
  ASSERT_TRUE(second.AwaitEnd());
  EXPECT_TRUE(got + second.text() == data_);
  EXPECT_EQ(child->Wait(std::chrono::seconds(10)).value().code(), 0U);
}

TEST_F(DirectStdio, ATailWaitsForAReaderThatIsAway) {
  const std::string tail = Pattern(100'000);
  const std::string file = File("data", tail);
  auto first = std::make_unique<Reader>(Fifo("out"), SIZE_MAX, true);
  auto io = Open({"", Path("out"), "", false});
  first.reset();
  const auto child = Start(*io, "cat " + file);
  EXPECT_EQ(child->Wait(std::chrono::seconds(10)).value().code(), 0U);
  io->Ended();
  Reader second(Path("out"));
  ASSERT_TRUE(second.AwaitEnd());
  EXPECT_TRUE(second.text() == tail);
  EXPECT_TRUE(host_.AwaitNames({}));
}

TEST_F(DirectStdio, ATailWaitsOverARestartToo) {
  const StdioPaths paths{"", Fifo("out"), "", false};
  auto first = std::make_unique<Reader>(paths.out, SIZE_MAX, true);
  auto io = Open(paths);
  first.reset();
  const auto child = Start(*io, "echo last words");
  EXPECT_EQ(child->Wait(std::chrono::seconds(10)).value().code(), 0U);
  Restart(io, paths);
  io->Ended();
  Reader second(paths.out);
  ASSERT_TRUE(second.AwaitEnd());
  EXPECT_EQ(second.text(), "last words\n");
  EXPECT_TRUE(host_.AwaitNames({}));
}

TEST_F(DirectStdio, SaysWhatIsUnread) {
  auto first = std::make_unique<Reader>(Fifo("out"), SIZE_MAX, true);
  auto io = Open({"", Path("out"), "", false});
  EXPECT_EQ(io->UnreadBytes(), 0U);
  const auto child = Start(*io, "echo last words");
  EXPECT_EQ(child->Wait(std::chrono::seconds(10)).value().code(), 0U);
  io->Ended();
  EXPECT_EQ(io->UnreadBytes(), 11U);
  const Reader second(Path("out"));
  EXPECT_TRUE(Eventually([&] { return io->UnreadBytes() == 0; }));
}

TEST_F(DirectStdio, CloseLetsAnUnreadTailGo) {
  auto first = std::make_unique<Reader>(Fifo("out"), SIZE_MAX, true);
  auto io = Open({"", Path("out"), "", false});
  first.reset();
  const auto child = Start(*io, "echo last words");
  EXPECT_EQ(child->Wait(std::chrono::seconds(10)).value().code(), 0U);
  io->Close();
  EXPECT_THAT(host_.Names(), IsEmpty());
}

TEST_F(DirectStdio, OpenWaitsForTheReader) {
  const std::string path = Fifo("out");
  const UniqueFd name = os::OpenName(path).value();
  const os::FileUse use = os::FileUse::Watch(name.get()).value();
  auto opening = std::async(std::launch::async, [&] { return Open({"", path, "", false}); });
  // It has looked for the reader and not found one.
  ASSERT_TRUE(Eventually([&] { return os::BytesQueued(use.fd()).value_or(0) > 0; }));
  Reader out(path);
  auto io = opening.get();
  const auto child = Start(*io, "echo hello");
  ASSERT_TRUE(out.AwaitEnd());
  EXPECT_EQ(out.text(), "hello\n");
}

TEST_F(DirectStdio, OpenGivesUpWithoutAReader) {
  options_.open_limit = std::chrono::milliseconds(20);
  const auto io = ProcessIo::Open(*relay_, host_, {"", Fifo("out"), "", false}, options_);
  ASSERT_FALSE(io.has_value());
  EXPECT_EQ(io.error().code, Code::kDeadlineExceeded);
  EXPECT_THAT(io.error().message, HasSubstr("nobody opened it for reading"));
  EXPECT_THAT(host_.Names(), IsEmpty());
}

TEST_F(DirectStdio, OpenIsGivenUpWhenTheCallerHasGone) {
  auto gone = std::make_shared<std::atomic<bool>>(false);
  options_.given_up = gone;
  const std::string path = Fifo("out");
  const UniqueFd name = os::OpenName(path).value();
  const os::FileUse use = os::FileUse::Watch(name.get()).value();
  auto opening = std::async(std::launch::async, [&] {
    return ProcessIo::Open(*relay_, host_, {"", path, "", false}, options_);
  });
  ASSERT_TRUE(Eventually([&] { return os::BytesQueued(use.fd()).value_or(0) > 0; }));
  *gone = true;
  EXPECT_EQ(opening.get().error().code, Code::kCanceled);
  EXPECT_THAT(host_.Names(), IsEmpty());
}

TEST_F(DirectStdio, OpenRefusesWhatIsNoFifo) {
  const auto file = ProcessIo::Open(*relay_, host_, {"", File("f", ""), "", false}, options_);
  ASSERT_FALSE(file.has_value());
  EXPECT_EQ(file.error().code, Code::kInvalidArgument);
  EXPECT_THAT(file.error().message, HasSubstr("not a fifo"));
  const auto absent = ProcessIo::Open(*relay_, host_, {"", Path("no"), "", false}, options_);
  ASSERT_FALSE(absent.has_value());
  EXPECT_EQ(absent.error().code, Code::kNotFound);
}

TEST_F(DirectStdio, AFullStoreFailsTheOpening) {
  host_.fail_put = true;
  // Not a Reader, which may come only when all is over and then wait for a writer.
  const UniqueFd reader(open(Fifo("out").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(bool(reader));
  const auto io = ProcessIo::Open(*relay_, host_, {"", Path("out"), "", false}, options_);
  ASSERT_FALSE(io.has_value());
  EXPECT_EQ(io.error().code, Code::kResourceExhausted);
  char byte = 0;
  EXPECT_EQ(read(reader.get(), &byte, 1), 0) << "a writer was left";
}

TEST_F(DirectStdio, StdinEndsWithClientAndCloseStdin) {
  Reader out(Fifo("out"));
  auto io = Open({Fifo("in"), Path("out"), "", false});
  const auto child = Start(*io, "cat; echo end");
  {
    Writer client(Path("in"));
    ASSERT_TRUE(client.Write("one "));
  }
  ASSERT_TRUE(out.AwaitText("one "));
  Writer again(Path("in"));
  ASSERT_TRUE(again.Write("two "));
  io->CloseStdin();
  ASSERT_TRUE(again.Write("three "));
  ASSERT_TRUE(out.AwaitText("one two three "));
  EXPECT_FALSE(child->Ended());
  again.Close();
  ASSERT_TRUE(out.AwaitEnd());
  EXPECT_EQ(out.text(), "one two three end\n");
}

TEST_F(DirectStdio, StdinPassesManyBytes) {
  Reader out(Fifo("out"));
  auto io = Open({Fifo("in"), Path("out"), "", false});
  const auto child = Start(*io, "cat");
  Writer client(Path("in"));
  ASSERT_TRUE(client.Write(data_));
  client.Close();
  io->CloseStdin();
  ASSERT_TRUE(out.AwaitEnd());
  EXPECT_TRUE(out.text() == data_);
}

TEST_F(DirectStdio, StdinStaysOpenOverARestart) {
  const StdioPaths paths{Fifo("in"), Fifo("out"), "", false};
  Reader out(paths.out);
  auto io = Open(paths);
  const auto child = Start(*io, "cat");
  {
    Writer client(paths.in);
    ASSERT_TRUE(client.Write("before "));
  }
  Restart(io, paths);
  Writer client(paths.in);
  ASSERT_TRUE(client.Write("after"));
  client.Close();
  ASSERT_TRUE(out.AwaitText("before after"));
  EXPECT_FALSE(out.at_end());
  io->CloseStdin();
  EXPECT_TRUE(out.AwaitEnd());
}

TEST_F(DirectStdio, ARestartBeforeTheProcessHasItsEndsIsNotSeen) {
  const StdioPaths paths{"", Fifo("out"), "", false};
  Reader out(paths.out);
  auto io = Open(paths);
  Restart(io, paths);
  const auto child = Start(*io, "echo hello");
  ASSERT_TRUE(out.AwaitEnd());
  EXPECT_EQ(out.text(), "hello\n");
  EXPECT_TRUE(host_.AwaitNames({}));
}

TEST_F(DirectStdio, TheStoreHasTheProcessEndsBeforeAnythingIsOpened) {
  const StdioPaths paths{Fifo("in"), Fifo("out"), "", false};
  const UniqueFd name = os::OpenName(paths.out).value();
  const os::FileUse use = os::FileUse::Watch(name.get()).value();
  int uses = -1;
  host_.on_hold = [&] { uses = static_cast<int>(os::BytesQueued(use.fd()).value_or(0)); };
  Reader out(paths.out);
  const auto io = Open(paths);
  EXPECT_EQ(uses, 0);
  EXPECT_THAT(host_.Names(), ElementsAre("stdin-r", "stdin-w", "stdout-r", "stdout-w"));
}

TEST_F(DirectStdio, AnOpeningThatWasInterruptedIsNotSeen) {
  const StdioPaths paths{Fifo("in"), Fifo("out"), "", false};
  Reader out(paths.out);
  // As far as an engine came that was killed before it had opened anything.
  std::vector<HeldFifo> held;
  held.push_back({"stdin-r", os::OpenName(paths.in).value(), os::PipeEnd::kRead});
  held.push_back({"stdout-w", os::OpenName(paths.out).value(), os::PipeEnd::kWrite});
  ASSERT_TRUE(host_.Hold(std::move(held)));
  Writer client(paths.in);
  ASSERT_TRUE(client.Write("early "));
  client.Close();
  options_.left = {"stdin-r", "stdout-w", "console"};
  auto io = Open(paths);
  const auto child = Start(*io, "cat; echo end");
  io->CloseStdin();
  ASSERT_TRUE(out.AwaitEnd());
  EXPECT_EQ(out.text(), "early end\n");
  io->Ended();
  EXPECT_TRUE(host_.AwaitNames({}));
}

TEST_F(DirectStdio, WhatWasLeftGoesWhereTheOpeningFails) {
  std::vector<HeldFifo> held;
  held.push_back({"stdout-w", os::OpenName(Fifo("out")).value(), os::PipeEnd::kWrite});
  ASSERT_TRUE(host_.Hold(std::move(held)));
  options_.left = {"stdout-w"};
  EXPECT_FALSE(ProcessIo::Open(*relay_, host_, {"", Path("no"), "", false}, options_));
  EXPECT_THAT(host_.Names(), IsEmpty());
}

TEST_F(DirectStdio, AProcessThatNeverCameEndsTheStreams) {
  Reader out(Fifo("out"));
  auto io = Open({Fifo("in"), Path("out"), "", false});
  io->Ended();
  io->Started();
  EXPECT_TRUE(Drained(*io));
  EXPECT_TRUE(out.AwaitEnd());
  EXPECT_TRUE(host_.AwaitNames({}));
}

TEST_F(DirectStdio, NoStreamsAreNoStreams) {
  auto io = Open({});
  const Stdio stdio = io->Take().value();
  EXPECT_FALSE(stdio.in.fd || stdio.out.fd || stdio.err.fd);
  io->Ended();
  EXPECT_TRUE(Drained(*io));
}

TEST_F(DirectStdio, FifosAreGivenToTheirOwner) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "needs root to give a file away";
  }
  options_.uid = 1234;
  options_.gid = 4321;
  Reader out(Fifo("out"));
  auto io = Open({"", Path("out"), "", false});
  struct stat info;
  ASSERT_EQ(stat(Path("out").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 1234U);
  EXPECT_EQ(info.st_gid, 4321U);
}

}  // namespace
}  // namespace gantry::io
