// SPDX-License-Identifier: Apache-2.0
// What a guest is told, reads and writes.
#include <fcntl.h>
#include <pty.h>
#include <sys/mman.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/wasm/engine/include/gantry_wasm_engine.h"
#include "tests/unit/wasm/engine/guest.h"

namespace gantry::wasm {
namespace {

using testing::SizeIs;

// As WASI numbers it.
constexpr uint32_t kBrokenPipe = 64;

struct Pipe {
  Pipe() { EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0); }

  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  ~Pipe() {
    Close(0);
    Close(1);
  }

  void Close(int end) {
    if (ends[end] >= 0) {
      close(std::exchange(ends[end], -1));
    }
  }

  int ends[2] = {-1, -1};
};

std::string Line(int file) {
  std::string line;
  for (char byte = 0; read(file, &byte, 1) == 1 && byte != '\n';) {
    line += byte;
  }
  return line;
}

TEST(Streams, ArgumentsAndEnvironmentAreThoseOfTheRequestAlone) {
  setenv("GANTRY_TEST_OF_THE_ENGINE", "not for guests", 1);
  const GuestEnd end = RunGuest(
      {.name = "hello", .args = {"/hello.wasm", "", "two words"}, .env = {"A=1", "B=x=y", "C="}});
  EXPECT_EQ(end.end, GANTRY_WASM_EXITED) << end.why;
  EXPECT_EQ(end.out, "arg /hello.wasm\narg \narg two words\nenv A=1\nenv B=x=y\nenv C=\n");
}

TEST(Streams, BytesThatAreNoTextReachTheGuest) {
  const GuestEnd end = RunGuest({.name = "hello", .args = {"h", "a\xff\xc0z"}, .env = {"A=\x80"}});
  EXPECT_EQ(end.end, GANTRY_WASM_EXITED) << end.why;
  EXPECT_EQ(end.out, "arg h\narg a\xff\xc0z\nenv A=\x80\n");
}

TEST(Streams, ThereMayBeNoArgumentsAtAll) {
  EXPECT_EQ(RunGuest({.name = "hello", .args = {}}).out, "");
}

TEST(Streams, OutputAndErrorsAreApart) {
  const GuestEnd end = RunGuest({.name = "tool", .args = {"tool", "streams", "x"}});
  EXPECT_EQ(end.out, "out x\n");
  EXPECT_EQ(end.err, "err x\n");
}

TEST(Streams, MuchOutputIsWhole) {
  EXPECT_THAT(RunGuest({.name = "tool", .args = {"tool", "big", "3000000"}}).out, SizeIs(3000000));
}

// Of a pipe's other end others may make what they like.
TEST(Streams, MuchOutputIsWholeWhereThePipeDoesNotBlock) {
  Pipe out;
  ASSERT_EQ(fcntl(out.ends[1], F_SETFL, O_NONBLOCK), 0);
  RunningGuest guest({.name = "tool", .args = {"tool", "big", "300000"}, .out = out.ends[1]});
  out.Close(1);
  EXPECT_THAT(Line(out.ends[0]), SizeIs(299999));
  EXPECT_EQ(guest.End().end, GANTRY_WASM_EXITED);
}

TEST(Streams, AnOutputThatNobodyReadsIsAnErrorOfTheGuests) {
  Pipe out;
  out.Close(0);
  const GuestEnd end =
      RunGuest({.name = "tool", .args = {"tool", "big", "100000"}, .out = out.ends[1]});
  EXPECT_EQ(end.status, 0);
  EXPECT_EQ(end.end, GANTRY_WASM_EXITED) << end.why;
  EXPECT_EQ(end.code, kBrokenPipe);
}

// The engine's own input is read by a thread.
TEST(Streams, ReadingTakesNoThread) {
  Pipe in;
  Pipe out;
  RunningGuest guest(
      {.name = "tool", .args = {"tool", "cat"}, .in = in.ends[0], .out = out.ends[1]});
  in.Close(0);
  out.Close(1);
  for (const std::string word : {"one", "two"}) {
    EXPECT_EQ(write(in.ends[1], (word + "\n").data(), word.size() + 1),
              static_cast<ssize_t>(word.size() + 1));
    EXPECT_EQ(Line(out.ends[0]), word);
    EXPECT_EQ(guest.Threads(), 1);
  }
  in.Close(1);
  const GuestEnd end = guest.End();
  EXPECT_EQ(end.end, GANTRY_WASM_EXITED) << end.why;
  EXPECT_EQ(end.code, 0u);
}

TEST(Streams, AFileIsReadToItsEnd) {
  const int file = memfd_create("in", MFD_CLOEXEC);
  const std::string text(200000, 'x');
  ASSERT_EQ(write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  lseek(file, 0, SEEK_SET);
  const GuestEnd end = RunGuest({.name = "tool", .args = {"tool", "cat"}, .in = file});
  EXPECT_EQ(end.out, text);
  EXPECT_EQ(end.code, 0u);
  close(file);
}

TEST(Streams, OfTheNullDeviceThereIsTheEnd) {
  EXPECT_EQ(RunGuest({.name = "tool", .args = {"tool", "cat"}}).code, 0u);
}

TEST(Streams, TheFlagsOfAnInputStayAsTheyAre) {
  Pipe in;
  const int before = fcntl(in.ends[0], F_GETFL);
  in.Close(1);
  EXPECT_EQ(RunGuest({.name = "tool", .args = {"tool", "cat"}, .in = in.ends[0]}).code, 0u);
  EXPECT_EQ(fcntl(in.ends[0], F_GETFL), before);
}

TEST(Streams, ATerminalIsOne) {
  int master = -1;
  int terminal = -1;
  ASSERT_EQ(openpty(&master, &terminal, nullptr, nullptr, nullptr), 0);
  EXPECT_EQ(
      RunGuest({.name = "tool", .args = {"tool", "terminals"}, .in = terminal, .err = terminal})
          .out,
      "101\n");
  EXPECT_EQ(RunGuest({.name = "tool", .args = {"tool", "terminals"}}).out, "000\n");
  close(master);
  close(terminal);
}

}  // namespace
}  // namespace gantry::wasm
