// SPDX-License-Identifier: Apache-2.0
#include "core/backend/call_processes.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include <gantry/toolkit/process/pidfd.h>
#include <gantry/unique_fd.h>

namespace gantry::backend {
namespace {

/// A session of two processes that wait for a signal; both hold the pipe open for writing.
class Session {
 public:
  Session() {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    reader_.reset(ends[0]);
    UniqueFd writer(ends[1]);
    pid_ = fork();
    if (pid_ == 0) {
      setsid();
      const char said = fork() == 0 ? 'b' : 'a';
      if (write(writer.get(), &said, 1) == 1) {
        pause();
      }
      _exit(0);
    }
    writer.reset();
    char said = 0;
    EXPECT_EQ(read(reader_.get(), &said, 1), 1);
    EXPECT_EQ(read(reader_.get(), &said, 1), 1);
  }

  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  ~Session() { kill(-pid_, SIGKILL); }

  ProcessId id() const { return {pid_, StartTimeOf(HostPid{pid_}).value_or(0)}; }

  void ExpectKilled() const {
    constexpr int kEndsWithinMs = 60'000;
    // The pipe's end: the other one is gone, too.
    pollfd ended{reader_.get(), POLLIN, 0};
    ASSERT_EQ(poll(&ended, 1, kEndsWithinMs), 1) << "one of them lives on";
    char byte = 0;
    EXPECT_EQ(read(reader_.get(), &byte, 1), 0);
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  }

 private:
  UniqueFd reader_;
  pid_t pid_ = 0;
};

TEST(CallProcesses, EndWithAllTheyHaveStarted) {
  const Session session;
  CallProcesses call;
  call.Add(session.id());
  EXPECT_TRUE(call.Check());
  call.End("it is over");
  session.ExpectKilled();
}

TEST(CallProcesses, AreEndedWhereTheyComeTooLate) {
  CallProcesses call;
  call.End("it is over");
  ASSERT_FALSE(call.Check());
  EXPECT_EQ(call.Check().error().code, Code::kFailedPrecondition);
  EXPECT_EQ(call.Check().error().message, "it is over");
  const Session session;
  call.Add(session.id());
  session.ExpectKilled();
}

TEST(CallProcesses, AreNotOthersOfTheirNumber) {
  Session session;
  CallProcesses call;
  ProcessId other = session.id();
  ++other.start_time;
  call.Add(other);
  call.End("it is over");
  const pid_t pid = session.id().pid;
  // What came before this is what it dies of.
  EXPECT_EQ(kill(-pid, SIGTERM), 0);
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
}

TEST(CallProcesses, BelongToTheThreadsCall) {
  EXPECT_EQ(CallProcesses::Current(), nullptr);
  const auto outer = std::make_shared<CallProcesses>();
  {
    const CallProcesses::Scope scope(outer);
    EXPECT_EQ(CallProcesses::Current(), outer);
    {
      const CallProcesses::Scope none(nullptr);
      EXPECT_EQ(CallProcesses::Current(), nullptr);
    }
    EXPECT_EQ(CallProcesses::Current(), outer);
  }
  EXPECT_EQ(CallProcesses::Current(), nullptr);
}

}  // namespace
}  // namespace gantry::backend
