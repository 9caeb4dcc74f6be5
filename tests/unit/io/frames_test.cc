// SPDX-License-Identifier: Apache-2.0
//
// Streams that come as frames: what is passed on, how they end, and that an engine which is
// killed after any of its system calls has neither lost nor doubled a byte.
#include "core/io/frames.h"

#include <sys/epoll.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/pipe.h>

#include "core/os/poll.h"
#include "core/os/splice.h"
#include "tests/unit/io/client.h"

namespace gantry::io {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string Header(size_t length) {
  return {static_cast<char>(length >> 24), static_cast<char>(length >> 16),
          static_cast<char>(length >> 8), static_cast<char>(length)};
}

std::string Frame(const std::string& payload) { return Header(payload.size()) + payload; }

struct Frames {
  std::string payload;
  /// How many frames had a length of 0, and whether nothing came behind the first of them.
  int ends = 0;
  bool ends_last = true;
};

Frames Parse(const std::string& bytes) {
  Frames frames;
  for (size_t at = 0; at + 4 <= bytes.size();) {
    size_t length = 0;
    for (int i = 0; i < 4; ++i) {
      length = length << 8 | static_cast<unsigned char>(bytes[at++]);
    }
    frames.payload += bytes.substr(at, length);
    at += length;
    frames.ends += length == 0 ? 1 : 0;
    frames.ends_last = frames.ends == 0 || at == bytes.size();
  }
  return frames;
}

struct SocketPair {
  SocketPair() {
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0) {
      ours.reset(fds[0]);
      theirs.reset(fds[1]);
    }
  }

  UniqueFd ours;
  UniqueFd theirs;
};

bool WriteAll(const UniqueFd& fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (written <= 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

/// What is there now.
std::string ReadWaiting(const UniqueFd& fd) {
  std::string bytes;
  char buffer[4096];
  IgnoreError(SetNonblocking(fd.get(), true), "the read would hang");
  for (ssize_t got = 0; (got = read(fd.get(), buffer, sizeof(buffer))) > 0;) {
    bytes.append(buffer, static_cast<size_t>(got));
  }
  return bytes;
}

/// As the relay does it. False: it came to no end.
bool Pump(Feed& feed, int part, int to) {
  for (;;) {
    const auto filled = feed.Fill();
    if (!filled || *filled != Feed::Filled::kSome) {
      return filled && *filled == Feed::Filled::kEnded;
    }
    if (!os::Splice(part, to, 64 << 10)) {
      return false;
    }
  }
}

/// What an engine is started with.
struct Stage {
  std::function<Result<std::unique_ptr<Feed>>()> open;
  FrameFiles files;
  UniqueFd to;

  bool Run() const {
    auto feed = open();
    return feed && Pump(**feed, files.part.get(), to.get());
  }
};

/// An engine that is killed when its system call number `calls` has been done. False: it had
/// come to its end before.
bool KilledAfter(const Stage& stage, int calls) {
  const pid_t engine = fork();
  if (engine == 0) {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    raise(SIGSTOP);
    _exit(stage.Run() ? 0 : 1);
  }
  int status = 0;
  waitpid(engine, &status, 0);
  for (int stop = 0; WIFSTOPPED(status) && stop < 2 * calls; ++stop) {
    ptrace(PTRACE_SYSCALL, engine, nullptr, nullptr);
    waitpid(engine, &status, 0);
  }
  if (!WIFSTOPPED(status)) {
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
    return false;
  }
  kill(engine, SIGKILL);
  waitpid(engine, &status, 0);
  return true;
}

/// Runs a stage of `make` for each system call after which it can be killed, the next engine to
/// the end, and gives what came out of it to `look`.
void KillAfterEachCall(const std::function<Stage(UniqueFd out)>& make,
                       const std::function<void(const std::string& bytes)>& look) {
  int calls = 1;
  for (bool killed = true; killed; ++calls) {
    SCOPED_TRACE(::testing::Message() << "killed after " << calls << " calls");
    SocketPair out;
    const Stage stage = make(std::move(out.ours));
    ASSERT_TRUE(stage.files);
    killed = KilledAfter(stage, calls);
    ASSERT_TRUE(stage.Run());
    look(ReadWaiting(out.theirs));
    ASSERT_FALSE(::testing::Test::HasFailure());
  }
  EXPECT_GT(calls, 20) << "so few calls are no engine's";
}

TEST(Frames, AreReadWithoutLossByEnginesThatAreKilled) {
  const std::string last(300, 'x');
  KillAfterEachCall(
      [&](UniqueFd out) {
        SocketPair in;
        Stage stage;
        stage.files = FrameFiles::Make().value_or(FrameFiles());
        stage.to = std::move(out);
        // The third header comes in two parts.
        EXPECT_TRUE(WriteAll(in.theirs, Frame("one ") + Frame("two ") + Header(300).substr(0, 3)));
        EXPECT_TRUE(WriteAll(in.theirs, Header(300).substr(3) + last + Header(0)));
        stage.open = [&files = stage.files, socket = std::make_shared<UniqueFd>(std::move(in.ours)),
                      theirs = std::make_shared<UniqueFd>(std::move(in.theirs)),
                      kept = std::make_shared<FrameFiles>(*stage.files.Duplicate())] {
          return ReadFrames(*socket->Duplicate(), *kept->Duplicate());
        };
        return stage;
      },
      [&](const std::string& bytes) { EXPECT_EQ(bytes, "one two " + last); });
}

TEST(Frames, AreWrittenWithoutLossByEnginesThatAreKilled) {
  const std::string text = "what a client has typed";
  KillAfterEachCall(
      [&](UniqueFd out) {
        auto pipe = MakePipe().value();
        Stage stage;
        stage.files = FrameFiles::Make().value_or(FrameFiles());
        stage.to = std::move(out);
        EXPECT_EQ(write(pipe.second.get(), text.data(), text.size()), ssize_t(text.size()));
        stage.open = [from = std::make_shared<UniqueFd>(std::move(pipe.first)),
                      kept = std::make_shared<FrameFiles>(*stage.files.Duplicate())] {
          return WriteFrames(*from->Duplicate(), *kept->Duplicate());
        };
        return stage;
      },
      [&](const std::string& bytes) {
        const Frames frames = Parse(bytes);
        EXPECT_EQ(frames.payload, text);
        EXPECT_EQ(frames.ends, 1);
        EXPECT_TRUE(frames.ends_last);
      });
}

TEST(Frames, OfAnotherFileThanTheirsAreRefused) {
  auto files = FrameFiles::Make();
  ASSERT_TRUE(files);
  ASSERT_EQ(write(files->state.get(), "no state", 8), 8);
  const auto feed = WriteFrames(UniqueFd(), std::move(*files));
  ASSERT_FALSE(feed);
  EXPECT_EQ(feed.error().code, Code::kInternal);
}

class FramedStdio : public IoTest {
 protected:
  /// Attached as `stream`, framed; gives the sandbox's side.
  UniqueFd Attach(ProcessIo& io, Stream stream) {
    SocketPair pair;
    const Status attached = io.AttachStream(stream, std::move(pair.ours), StreamFraming::kFrames);
    EXPECT_TRUE(attached) << attached.error().message;
    return std::move(pair.theirs);
  }

  static bool AwaitClosed(const UniqueFd& fd) {
    return Eventually([&] {
      char byte = 0;
      return recv(fd.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
    });
  }
};

/// Answers all that comes in frames of its own, until the end. False: that did not come.
bool Echo(const UniqueFd& from, const UniqueFd& to) {
  std::string held;
  char buffer[5000];
  for (ssize_t got = 0; (got = read(from.get(), buffer, sizeof(buffer))) > 0;) {
    held.append(buffer, static_cast<size_t>(got));
    for (;;) {
      size_t length = 0;
      for (size_t i = 0; i < 4 && held.size() >= 4; ++i) {
        length = length << 8 | static_cast<unsigned char>(held[i]);
      }
      if (held.size() < 4 || held.size() < 4 + length) {
        break;
      }
      if (!WriteAll(to, std::string_view(held).substr(0, 4 + length))) {
        return false;
      }
      held.erase(0, 4 + length);
      if (length == 0) {
        return held.empty();
      }
    }
  }
  return false;
}

TEST_F(FramedStdio, PassesManyBytesBothWaysAndTheirEnd) {
  const StdioPaths paths{Fifo("in"), Fifo("out"), "", false};
  const std::string data = Pattern(3'000'000);
  Reader out(paths.out);
  auto io = Open(paths);
  const UniqueFd in_guest = Attach(*io, Stream::kStdin);
  UniqueFd out_guest = Attach(*io, Stream::kStdout);
  io->Started();
  bool echoed = false;
  std::thread guest([&] { echoed = Echo(in_guest, out_guest); });
  {
    Writer client(paths.in);
    EXPECT_TRUE(client.Write(data));
    io->CloseStdin();
  }
  EXPECT_TRUE(out.AwaitEnd());
  guest.join();
  EXPECT_TRUE(echoed);
  EXPECT_TRUE(out.text() == data);
  // Who has read the end closes; who has sent it waits.
  EXPECT_TRUE(AwaitClosed(out_guest));
  EXPECT_TRUE(host_.AwaitNames({"frames-in", "part-in", "stream-in"}));
  char byte = 0;
  EXPECT_EQ(recv(in_guest.get(), &byte, 1, MSG_DONTWAIT), -1);
  io->Ended();
  EXPECT_TRUE(host_.AwaitNames({}));
  EXPECT_TRUE(AwaitClosed(in_guest));
}

TEST_F(FramedStdio, GoesOnInTheMiddleOfAFrameAfterARestart) {
  const StdioPaths paths{Fifo("in"), Fifo("out"), "", false};
  Reader out(paths.out);
  auto io = Open(paths);
  const UniqueFd in_guest = Attach(*io, Stream::kStdin);
  const UniqueFd out_guest = Attach(*io, Stream::kStdout);
  io->Started();
  Writer client(paths.in);
  ASSERT_TRUE(client.Write("typed"));
  ASSERT_TRUE(WriteAll(out_guest, Header(7) + "one "));
  ASSERT_TRUE(out.AwaitText("one "));
  std::string typed;
  ASSERT_TRUE(Eventually([&] { return Parse(typed += ReadWaiting(in_guest)).payload == "typed"; }));
  Restart(io, paths);
  io->Started();
  ASSERT_TRUE(client.Write(", more"));
  ASSERT_TRUE(WriteAll(out_guest, "two" + Frame("!") + Header(0)));
  ASSERT_TRUE(out.AwaitEnd());
  EXPECT_EQ(out.text(), "one two!");
  EXPECT_TRUE(
      Eventually([&] { return Parse(typed += ReadWaiting(in_guest)).payload == "typed, more"; }));
  EXPECT_EQ(Parse(typed).ends, 0);
  EXPECT_THAT(host_.Logged(), IsEmpty());
}

TEST_F(FramedStdio, HasAnEndOfInputThatOutlivesTheEngineOnce) {
  const StdioPaths paths{"", "", "", false};
  auto io = Open(paths);
  const UniqueFd guest = Attach(*io, Stream::kStdin);
  io->Started();
  std::string typed;
  ASSERT_TRUE(Eventually([&] { return (typed += ReadWaiting(guest)) == Header(0); }));
  Restart(io, paths);
  io->Started();
  // A second end would come before this one.
  io->Ended();
  EXPECT_TRUE(AwaitClosed(guest));
  EXPECT_THAT(ReadWaiting(guest), IsEmpty());
}

TEST_F(FramedStdio, GoesIntoALogFile) {
  auto io = Open({"", "file://" + Path("log"), "", false});
  const UniqueFd guest = Attach(*io, Stream::kStdout);
  io->Started();
  ASSERT_TRUE(WriteAll(guest, Frame("a line\n") + Frame("another\n") + Header(0)));
  io->Ended();
  ASSERT_TRUE(Drained(*io));
  EXPECT_EQ(Contents("log"), "a line\nanother\n");
  EXPECT_THAT(host_.Logged(), IsEmpty());
}

TEST_F(FramedStdio, SaysThatAStreamWasCutOff) {
  for (const std::string& said : {Frame("words"), Frame("words") + Header(100) + "w",
                                  Frame("words") + Header(1).substr(0, 2)}) {
    const std::string path = Fifo("out" + std::to_string(said.size()));
    Reader out(path);
    auto io = Open({"", path, "", false});
    UniqueFd guest = Attach(*io, Stream::kStdout);
    io->Started();
    ASSERT_TRUE(WriteAll(guest, said));
    guest.reset();
    ASSERT_TRUE(out.AwaitEnd());
    EXPECT_THAT(out.text(), ::testing::StartsWith("words"));
    EXPECT_TRUE(host_.AwaitNames({}));
    io->Close();
  }
  EXPECT_THAT(host_.Logged(), ::testing::SizeIs(3));
  EXPECT_THAT(host_.Logged(), ::testing::Each(HasSubstr("ended without its last frame")));
}

TEST_F(FramedStdio, NeedsAStreamSocket) {
  auto io = Open({});
  const Status attached =
      io->AttachStream(Stream::kStdout, MakePipe().value().first, StreamFraming::kFrames);
  ASSERT_FALSE(attached);
  EXPECT_EQ(attached.error().code, Code::kInvalidArgument);
  // Nothing of it is left.
  EXPECT_THAT(host_.Names(), Not(Contains("frames-out")));
  Attach(*io, Stream::kStdout);
}

}  // namespace
}  // namespace gantry::io
