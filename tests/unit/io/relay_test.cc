// SPDX-License-Identifier: Apache-2.0
#include "core/io/relay.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>

#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/pipe.h>

#include "core/os/fifo.h"
#include "core/os/splice.h"
#include "tests/unit/io/client.h"

namespace gantry::io {
namespace {

/// An engine that copies and can be killed.
pid_t StartEngine(const UniqueFd& source, const UniqueFd& sink) {
  const pid_t pid = fork();
  if (pid != 0) {
    return pid;
  }
  Relay relay;
  CopySpec spec;
  spec.source = source.Duplicate().value();
  spec.sink = sink.Duplicate().value();
  relay.Start(std::move(spec));
  while (true) {
    pause();
  }
}

void Kill(pid_t engine) {
  kill(engine, SIGKILL);
  waitpid(engine, nullptr, 0);
}

TEST(Relay, AKilledEngineNeitherLosesNorDoublesAByte) {
  const std::string data = Pattern(size_t{2} << 20);
  Terminal terminal;
  auto pipe = MakePipe().value();
  ASSERT_TRUE(os::SetPipeSize(pipe.first.get(), 256 << 10).has_value());
  std::thread writer([&] {
    size_t done = 0;
    while (done < data.size()) {
      const ssize_t put = write(terminal.slave.get(), data.data() + done, data.size() - done);
      ASSERT_GT(put, 0);
      done += static_cast<size_t>(put);
    }
  });
  // A thread that has begun allocates nothing: it holds no lock that a fork would copy.
  pollfd written{terminal.master.get(), POLLIN, 0};
  ASSERT_EQ(poll(&written, 1, 10'000), 1);
  std::string got;
  std::string buffer(65536, '\0');
  pid_t engine = StartEngine(terminal.master, pipe.second);
  int kills = 0;
  size_t next_kill = 50'000;
  EXPECT_TRUE(Eventually([&] {
    const ssize_t count = read(pipe.first.get(), buffer.data(), buffer.size());
    got.append(buffer.data(), count > 0 ? static_cast<size_t>(count) : 0);
    if (got.size() >= next_kill && got.size() < data.size()) {
      Kill(engine);
      engine = StartEngine(terminal.master, pipe.second);
      next_kill = got.size() + 50'000;
      ++kills;
    }
    return got.size() >= data.size();
  }));
  Kill(engine);
  if (got.size() < data.size()) {
    terminal.master.reset();
  }
  writer.join();
  EXPECT_TRUE(got == data);
  EXPECT_GT(kills, 20);
}

TEST(Relay, FinishEndsAnEmptyCopy) {
  auto from = MakePipe().value();
  auto to = MakePipe().value();
  Relay relay;
  std::promise<CopyEnd> ended;
  CopySpec spec;
  spec.source = std::move(from.first);
  spec.sink = std::move(to.second);
  spec.on_end = [&](CopyEnd end, uint64_t) { ended.set_value(end); };
  ASSERT_EQ(write(from.second.get(), "last", 4), 4);
  const CopyId copy = relay.Start(std::move(spec));
  relay.Finish(copy);
  auto future = ended.get_future();
  ASSERT_EQ(future.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  EXPECT_EQ(future.get(), CopyEnd::kFinished);
  char text[8];
  EXPECT_EQ(read(to.first.get(), text, sizeof(text)), 4);
  EXPECT_EQ(read(to.first.get(), text, sizeof(text)), 0);
}

TEST(Relay, StopClosesWithoutACallback) {
  auto from = MakePipe().value();
  auto to = MakePipe().value();
  Relay relay;
  CopySpec spec;
  spec.source = std::move(from.first);
  spec.sink = std::move(to.second);
  spec.on_end = [&](CopyEnd, uint64_t) { ADD_FAILURE(); };
  relay.Stop(relay.Start(std::move(spec)));
  EXPECT_FALSE(os::HasReader(from.second.get()));
  char byte = 0;
  EXPECT_EQ(read(to.first.get(), &byte, 1), 0);
}

TEST(Relay, AReaderThatIsGoneForGoodDoesNotBlockTheWriter) {
  auto from = MakePipe().value();
  auto to = MakePipe().value();
  to.first.reset();
  Relay relay;
  std::promise<uint64_t> dropped;
  CopySpec spec;
  spec.source = std::move(from.first);
  spec.sink = std::move(to.second);
  spec.on_end = [&](CopyEnd, uint64_t bytes) { dropped.set_value(bytes); };
  relay.Start(std::move(spec));
  ASSERT_TRUE(SetNonblocking(from.second.get(), false).has_value());
  const std::string data = Pattern(size_t{1} << 20);
  ASSERT_EQ(write(from.second.get(), data.data(), data.size()), 1 << 20);
  from.second.reset();
  auto future = dropped.get_future();
  ASSERT_EQ(future.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  EXPECT_EQ(future.get(), data.size());
}

TEST(Relay, WhatCannotBeSplicedIsCopied) {
  // Neither of the two is a pipe.
  Terminal terminal;
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  UniqueFd ours(fds[0]);
  UniqueFd theirs(fds[1]);
  Relay relay;
  CopySpec spec;
  spec.source = std::move(terminal.master);
  spec.sink = std::move(ours);
  spec.sink_kind = SinkKind::kSocket;
  relay.Start(std::move(spec));
  const std::string data = Pattern(100'000);
  std::thread writer([&] {
    EXPECT_EQ(write(terminal.slave.get(), data.data(), data.size()), 100'000);
    terminal.slave.reset();
  });
  std::string got;
  std::string buffer(65536, '\0');
  while (true) {
    const ssize_t count = read(theirs.get(), buffer.data(), buffer.size());
    if (count <= 0) {
      break;
    }
    got.append(buffer.data(), static_cast<size_t>(count));
  }
  writer.join();
  EXPECT_TRUE(got == data);
}

}  // namespace
}  // namespace gantry::io
