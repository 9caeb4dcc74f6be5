// SPDX-License-Identifier: Apache-2.0
//
// That an engine which is killed after any of its system calls has neither lost nor doubled a byte
// of a stream, nor of what either side may send, and that the next one goes on.
#include "core/io/stream_wire.h"

#include <poll.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <memory>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/pipe.h>

#include "core/async/account.h"
#include "core/io/relay.h"
#include "core/io/stream_pump.h"
#include "core/os/splice.h"
#include "tests/unit/io/stream_client.h"

namespace gantry::io {
namespace {

using Moved = StreamWire::Moved;
using Role = StreamWire::Role;

constexpr int kComesWithinMs = 10'000;

/// One connection and one pipe, and all that engines leave each other.
struct Stage {
  UniqueFd client;
  StreamFiles files;
  UniqueFd read_end;
  UniqueFd write_end;

  Stage() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    client.reset(fds[1]);
    files = StreamFiles::Make({7, 1, UniqueFd(fds[0])}).value();
    auto pipe = MakePipe().value();
    read_end = std::move(pipe.first);
    write_end = std::move(pipe.second);
  }

  void Say(std::string_view bytes) const {
    ASSERT_EQ(send(client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), ssize_t(bytes.size()));
  }

  std::string Heard() const {
    std::string bytes;
    char buffer[4096];
    ssize_t got = 0;
    while ((got = recv(client.get(), buffer, sizeof(buffer), MSG_DONTWAIT)) > 0) {
      bytes.append(buffer, static_cast<size_t>(got));
    }
    return bytes;
  }

  std::string InPipe() const {
    std::string bytes(65536, '\0');
    const ssize_t got = read(read_end.get(), bytes.data(), bytes.size());
    bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return bytes;
  }
};

/// An engine that has the output. False: it came to no end.
bool SendAll(const Stage& stage) {
  auto wire = StreamWire::Open(stage.files.Duplicate().value(), Role::kSender);
  for (int turns = 0; wire && turns < 1000; ++turns) {
    const auto received = (*wire)->ReceiveOn(-1);
    const auto sent = (*wire)->SendOn(stage.read_end.get());
    if (!received || !sent) {
      return false;
    }
    if (*sent == Moved::kEnded) {
      return true;
    }
    const size_t queued = os::BytesQueued(stage.read_end.get()).value_or(0);
    if (queued == 0) {
      EXPECT_TRUE((*wire)->BeginEnd());
    } else if ((*wire)->window() == 0) {
      return false;
    } else {
      EXPECT_TRUE((*wire)->BeginData(std::min<size_t>(queued, (*wire)->window())));
    }
  }
  return false;
}

/// And one that has the input; allows 40 bytes at a time.
bool ReceiveAll(const Stage& stage) {
  auto wire = StreamWire::Open(stage.files.Duplicate().value(), Role::kReceiver);
  for (int turns = 0; wire && turns < 1000; ++turns) {
    if (!(*wire)->sending() && (*wire)->window() < 60) {
      EXPECT_TRUE((*wire)->BeginWindow(static_cast<uint32_t>(100 - (*wire)->window())));
    }
    const auto sent = (*wire)->SendOn(-1);
    const auto received = (*wire)->ReceiveOn(stage.write_end.get());
    if (!received || !sent) {
      return false;
    }
    if (*received == Moved::kEnded) {
      return true;
    }
  }
  return false;
}

/// False: nothing came in time.
bool Await(const UniqueFd& end) {
  pollfd one{.fd = end.get(), .events = POLLIN, .revents = 0};
  return poll(&one, 1, kComesWithinMs) == 1;
}

/// So much the client may have sent by then.
uint64_t Allowed(const std::string& heard) {
  const StreamFrames frames = ParseStream(heard);
  return std::accumulate(frames.windows.begin(), frames.windows.end(), uint64_t{0});
}

/// An engine that is killed when its system call number `calls` has been done. False: it had
/// come to its end before.
bool KilledAfter(const std::function<bool()>& run, int calls) {
  const pid_t engine = fork();
  if (engine == 0) {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    raise(SIGSTOP);
    _exit(run() ? 0 : 1);
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

void KillAfterEachCall(const std::function<void(const Stage&)>& set, bool (*run)(const Stage&),
                       const std::function<void(const Stage&)>& look) {
  int calls = 1;
  for (bool killed = true; killed; ++calls) {
    SCOPED_TRACE(::testing::Message() << "killed after " << calls << " calls");
    const Stage stage;
    set(stage);
    killed = KilledAfter([&] { return run(stage); }, calls);
    ASSERT_TRUE(run(stage));
    look(stage);
    ASSERT_FALSE(::testing::Test::HasFailure());
  }
  EXPECT_GT(calls, 40) << "so few calls are no engine's";
}

TEST(StreamWire, SendsWithoutLossThoughEnginesAreKilled) {
  // To the byte what is allowed: a window that is lost would end in a wait.
  const std::string text = "what a process has written, in all of sixty bytes and no more";
  KillAfterEachCall(
      [&](const Stage& stage) {
        ASSERT_EQ(write(stage.write_end.get(), text.data(), text.size()), ssize_t(text.size()));
        stage.Say(StreamWindowFrame(1, 20) + StreamWindowFrame(1, 30) +
                  StreamWindowFrame(1, static_cast<uint32_t>(text.size()) - 50));
      },
      SendAll,
      [&](const Stage& stage) {
        const StreamFrames frames = ParseStream(stage.Heard());
        EXPECT_EQ(frames.data, text);
        EXPECT_EQ(frames.ends, 1);
        EXPECT_TRUE(frames.ends_last);
        EXPECT_EQ(frames.rest, 0U);
        EXPECT_EQ(
            StreamWire::Open(stage.files.Duplicate().value(), Role::kSender).value()->window(), 0U);
      });
}

TEST(StreamWire, ReceivesWithoutLossThoughEnginesAreKilled) {
  const std::string first(50, 'a');
  const std::string second(30, 'b');
  KillAfterEachCall(
      [&](const Stage& stage) {
        stage.Say(DataFrame(first) + DataFrame(second) + StreamEndFrame(1));
      },
      ReceiveAll,
      [&](const Stage& stage) {
        EXPECT_EQ(stage.InPipe(), first + second);
        const StreamFrames frames = ParseStream(stage.Heard());
        const uint32_t allowed = std::accumulate(frames.windows.begin(), frames.windows.end(), 0U);
        const auto wire = StreamWire::Open(stage.files.Duplicate().value(), Role::kReceiver);
        EXPECT_EQ(allowed, wire.value()->window() + first.size() + second.size());
        EXPECT_EQ(frames.rest, 0U);
      });
}

TEST(StreamPump, AllowsMoreThoughAnEngineIsKilledThatDidAndTheClientHasUsedIt) {
  const std::string frame(kStreamDataBytes, 'a');
  int calls = 1;
  for (bool killed = true; killed; ++calls) {
    SCOPED_TRACE(::testing::Message() << "killed after " << calls << " calls");
    Stage stage;
    killed = KilledAfter(
        [&] {
          auto wire = StreamWire::Open(stage.files.Duplicate().value(), Role::kReceiver);
          return wire && (*wire)->BeginWindow(kStreamWindowBytes) && (*wire)->SendOn(-1);
        },
        calls);
    std::string heard = stage.Heard();
    uint64_t sent = 0;
    for (; sent + frame.size() <= Allowed(heard); sent += frame.size()) {
      stage.Say(DataFrame(frame));
    }
    Relay relay;
    const StreamEvents events{[] {}, [](uint64_t) {}, [](const std::string&) {}};
    const auto input = std::make_shared<InputStream>(relay, std::move(stage.write_end),
                                                     async::AccountPtr(), events);
    relay.Do([&] {
      input->Attach(StreamWire::Open(stage.files.Duplicate().value(), Role::kReceiver).value());
    });
    std::string came;
    while (came.size() < sent && Await(stage.read_end)) {
      came += stage.InPipe();
    }
    EXPECT_EQ(came, std::string(sent, 'a'));
    while (Allowed(heard) <= sent && Await(stage.client)) {
      heard += stage.Heard();
    }
    EXPECT_GT(Allowed(heard), sent)
        << "it may send nothing more, and nobody will tell it that it may";
    relay.Do([&] { input->Close(); });
    ASSERT_FALSE(::testing::Test::HasFailure());
  }
  EXPECT_GT(calls, 8) << "so few calls are no engine's";
}

TEST(StreamWire, KnowsItsConnectionAgain) {
  const Stage stage;
  EXPECT_EQ(StreamWire::Open(stage.files.Duplicate().value(), Role::kSender).value()->number(), 7U);
}

TEST(StreamWire, OfAnotherFileThanItsOwnIsRefused) {
  Stage stage;
  ASSERT_EQ(ftruncate(stage.files.state.get(), 3), 0);
  const auto wire = StreamWire::Open(std::move(stage.files), Role::kSender);
  ASSERT_FALSE(wire);
  EXPECT_EQ(wire.error().code, Code::kInternal);
}

TEST(StreamWire, MoreThanIsAllowedIsBad) {
  const Stage stage;
  const auto wire = StreamWire::Open(stage.files.Duplicate().value(), Role::kReceiver).value();
  ASSERT_TRUE(wire->BeginWindow(10));
  ASSERT_TRUE(wire->SendOn(-1));
  stage.Say(DataFrame("0123456789"));
  EXPECT_EQ(wire->ReceiveOn(stage.write_end.get()).value(), Moved::kSocketEmpty);
  stage.Say(DataFrame("x"));
  EXPECT_EQ(wire->ReceiveOn(stage.write_end.get()).value(), Moved::kBad);
  EXPECT_EQ(stage.InPipe(), "0123456789");
}

TEST(StreamWire, DataForWhoSendsIsBad) {
  const Stage stage;
  const auto wire = StreamWire::Open(stage.files.Duplicate().value(), Role::kSender).value();
  stage.Say(DataFrame("x"));
  EXPECT_EQ(wire->ReceiveOn(-1).value(), Moved::kBad);
}

TEST(StreamWire, AFrameInSinglePiecesIsBad) {
  const Stage stage;
  const auto wire = StreamWire::Open(stage.files.Duplicate().value(), Role::kSender).value();
  for (const char byte : StreamWindowFrame(1, 10)) {
    EXPECT_NE(wire->ReceiveOn(-1).value(), Moved::kBad);
    stage.Say({&byte, 1});
  }
  EXPECT_EQ(wire->ReceiveOn(-1).value(), Moved::kBad);
}

}  // namespace
}  // namespace gantry::io
