// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <gantry/toolkit/context/own_processes.h>
#include <gantry/toolkit/descriptors/memfd.h>
#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/process/pidfd.h>

namespace gantry {
namespace {

constexpr std::chrono::minutes kLong{2};

SpawnRequest Shell(const std::string& script) {
  SpawnRequest request;
  request.argv = {"/bin/sh", "-c", script};
  request.env = {"PATH=/usr/bin:/bin"};
  return request;
}

class OwnProcessesTest : public testing::Test {
 protected:
  std::vector<std::string> log_;
  OwnProcesses context_{[this](LogLevel, std::string_view message) { log_.emplace_back(message); }};
};

TEST_F(OwnProcessesTest, RunAndSayHowTheyEnded) {
  const auto output = CreateMemfd("output");
  SpawnRequest request = Shell("echo here; exit 7");
  request.fds.emplace_back(*output->Duplicate(), STDOUT_FILENO);
  const auto process = context_.Spawn(std::move(request));
  ASSERT_TRUE(process) << process.error().message;
  const auto ended = (*process)->Wait(kLong);
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->code(), 7U);
  EXPECT_EQ((*process)->Ended()->code(), 7U) << "it is collected once";
  EXPECT_EQ(ReadAt(output->get(), 0, 100).value_or(""), "here\n");
  EXPECT_EQ((*process)->Signal(SIGTERM).error().code, Code::kNotFound);
}

TEST_F(OwnProcessesTest, AreWaitedForAsLongAsIsSaid) {
  const auto process = context_.Spawn(Shell("exec sleep 10000"));
  ASSERT_TRUE(process) << process.error().message;
  EXPECT_EQ((*process)->Wait(std::chrono::milliseconds(1)).error().code, Code::kDeadlineExceeded);
  EXPECT_TRUE((*process)->Signal(SIGTERM));
  EXPECT_EQ((*process)->Wait(kLong)->code(), 128U + SIGTERM);
}

TEST_F(OwnProcessesTest, EndWithTheirObject) {
  auto process = context_.Spawn(Shell("exec sleep 10000"));
  ASSERT_TRUE(process) << process.error().message;
  const UniqueFd pidfd = *OpenPidfd((*process)->pid());
  process->reset();
  pollfd one = {.fd = pidfd.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&one, 1, 0), 1);
}

/// However it ends.
TEST_F(OwnProcessesTest, EndWithTheProgram) {
  auto ends = *MakePipe();
  const pid_t program = fork();
  if (program == 0) {
    // Its end of the pipe is open until it has ended.
    SpawnRequest request = Shell("echo >&7; exec sleep 10000");
    request.fds.emplace_back(std::move(ends.second), 7);
    const auto process = context_.Spawn(std::move(request));
    for (;;) {
      pause();
    }
  }
  ends.second.reset();
  const auto limit = static_cast<int>(std::chrono::milliseconds(kLong).count());
  pollfd one = {.fd = ends.first.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(poll(&one, 1, limit), 1);
  char byte = 0;
  EXPECT_EQ(read(ends.first.get(), &byte, 1), 1) << "it runs";
  kill(program, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(program, &status, 0), program);
  EXPECT_EQ(poll(&one, 1, limit), 1);
  EXPECT_EQ(one.revents, POLLHUP);
}

TEST_F(OwnProcessesTest, AreAllThatIsLent) {
  EXPECT_EQ(context_.Take("x").error().code, Code::kUnimplemented);
  EXPECT_EQ(context_.FindSpawned("x"), nullptr);
  context_.Log(LogLevel::kInfo, "a line");
  EXPECT_EQ(log_, std::vector<std::string>{"a line"});
}

}  // namespace
}  // namespace gantry
