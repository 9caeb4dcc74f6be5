// SPDX-License-Identifier: Apache-2.0
//
// Log programs: binary:// and binary-v2://.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/io/client.h"

namespace gantry::io {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LoggedStdio : public IoTest {
 protected:
  LoggedStdio() {
    options_.id = "c1";
    options_.ns = "default";
    options_.logger_tag = "logger";
  }

  /// A program that runs `script`; the test's directory is $DIR in it.
  StdioPaths Logger(const std::string& scheme, const std::string& script) {
    File("logger", "#!/bin/sh\nDIR=" + dir_.path() + "\n" + script + "\n", 0755);
    return {"", scheme + "://" + Path("logger") + "?b=2&a=1", "", false};
  }

  std::shared_ptr<ChildProcess> Start(ProcessIo& io, const std::string& script) {
    Stdio stdio = io.Take().value();
    auto child = Shell(script, {{stdio.out.fd.get(), 1}, {stdio.err.fd.get(), 2}});
    stdio = Stdio();
    io.Started();
    return child;
  }
};

constexpr const char* kCollect =
    "exec 5>&-; /bin/cat <&3 >$DIR/out & /bin/cat <&4 >$DIR/err & wait; echo done >$DIR/done";

TEST_F(LoggedStdio, GetsAllThatTheProcessWrites) {
  const std::string data = Pattern(size_t{10} << 20);
  const std::string file = File("data", data);
  auto io = Open(Logger("binary", kCollect));
  const auto child = Start(*io, "cat " + file + "; echo problem >&2");
  EXPECT_EQ(child->Wait(std::chrono::seconds(10)).value().code(), 0U);
  io->Ended();
  ASSERT_TRUE(Drained(*io));
  io->Close();
  EXPECT_TRUE(Contents("out") == data);
  EXPECT_EQ(Contents("err"), "problem\n");
  EXPECT_EQ(Contents("done"), "done\n");
  EXPECT_THAT(host_.Names(), IsEmpty());
}

TEST_F(LoggedStdio, HasItsEnvironmentAndArguments) {
  auto io = Open(
      Logger("binary", "/usr/bin/tr '\\0' '\\n' </proc/$$/environ >$DIR/env; echo $* >$DIR/args"));
  io->Close();
  EXPECT_EQ(Contents("env"), "CONTAINER_ID=c1\nCONTAINER_NAMESPACE=default\n");
  EXPECT_EQ(Contents("args"), "a 1 b 2\n");
}

TEST_F(LoggedStdio, GetsATerminalsOutput) {
  StdioPaths paths = Logger("binary", kCollect);
  paths.terminal = true;
  auto io = Open(paths);
  Terminal terminal;
  ASSERT_TRUE(io->AttachConsole(std::move(terminal.master)).has_value());
  io->Started();
  const auto child = Shell("echo hello", {{terminal.slave.get(), 1}});
  terminal.slave.reset();
  EXPECT_EQ(child->Wait(std::chrono::seconds(10)).value().code(), 0U);
  Restart(io, paths);
  io->Ended();
  ASSERT_TRUE(Drained(*io));
  io->Close();
  EXPECT_EQ(Contents("out"), "hello\n");
}

TEST_F(LoggedStdio, OneThatEndsAtOnceCountsAsReady) {
  const auto io = ProcessIo::Open(*relay_, host_, Logger("binary", "exit 1"), options_);
  EXPECT_TRUE(io.has_value());
}

TEST_F(LoggedStdio, V2MustSayThatItIsReady) {
  const auto silent = ProcessIo::Open(*relay_, host_, Logger("binary-v2", "exit 1"), options_);
  ASSERT_FALSE(silent.has_value());
  EXPECT_EQ(silent.error().code, Code::kUnavailable);
  EXPECT_THAT(silent.error().message, HasSubstr("ended before it was ready"));
  const auto ready = ProcessIo::Open(
      *relay_, host_, Logger("binary-v2", std::string("echo >&5; ") + kCollect), options_);
  ASSERT_TRUE(ready.has_value()) << ready.error().message;
  (*ready)->Close();
  EXPECT_EQ(Contents("done"), "done\n");
}

TEST_F(LoggedStdio, OneThatNeverGetsReadyIsKilled) {
  options_.open_limit = std::chrono::milliseconds(50);
  const auto io = ProcessIo::Open(
      *relay_, host_,
      Logger("binary", "trap '' TERM; while :; do read x; done <&3; while :; do :; done"),
      options_);
  ASSERT_FALSE(io.has_value());
  EXPECT_EQ(io.error().code, Code::kDeadlineExceeded);
  EXPECT_TRUE(host_.FindSpawned("logger")->Ended().has_value());
}

TEST_F(LoggedStdio, OneThatStaysIsToldToEnd) {
  auto io = Open(
      Logger("binary", "trap 'echo told >$DIR/done; exit 0' TERM; exec 5>&-; while :; do :; done"));
  io->Close();
  EXPECT_EQ(Contents("done"), "told\n");
}

TEST_F(LoggedStdio, AMissingProgramIsNamed) {
  const auto io =
      ProcessIo::Open(*relay_, host_, {"", "binary:///no/such/logger", "", false}, options_);
  ASSERT_FALSE(io.has_value());
  EXPECT_EQ(io.error().code, Code::kNotFound);
  EXPECT_THAT(io.error().message, HasSubstr("start logger '/no/such/logger'"));
}

}  // namespace
}  // namespace gantry::io
