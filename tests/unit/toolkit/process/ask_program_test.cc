// SPDX-License-Identifier: Apache-2.0
#include "gantry/toolkit/process/ask_program.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include <gantry/number.h>
#include <gantry/toolkit/files/files.h>

namespace gantry {
namespace {

TEST(AskProgram, TellsWhatItSaysUpToTheLimit) {
  EXPECT_EQ(AskProgram({.program = "/bin/sh", .arguments = {"-c", "echo on"}}).value(), "on\n");
  EXPECT_EQ(
      AskProgram(
          {.program = "/bin/sh", .arguments = {"-c", "echo much; exec sleep 1000"}, .max_bytes = 2})
          .value(),
      "mu");
}

/// Once it is there.
pid_t PidIn(const std::string& file) {
  std::string text;
  while (!text.ends_with('\n')) {
    text = ReadFile(file, 100).value_or("");
  }
  text.pop_back();
  return static_cast<pid_t>(ParseNumber(text).value_or(0));
}

/// A process that holds the one whose pid is in `file`, so that its parent cannot reap it: as one
/// that the kernel does not let end.
pid_t HoldWhoIsIn(const std::string& file, const std::string& held) {
  const pid_t holder = fork();
  if (holder != 0) {
    return holder;
  }
  if (ptrace(PTRACE_SEIZE, PidIn(file), nullptr, nullptr) != 0 || !WriteFile(held, "", 0600)) {
    _exit(1);
  }
  for (;;) {
    pause();
  }
}

TEST(AskProgram, DoesNotWaitForOneThatDoesNotEndWhenItIsKilled) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "holds another process, which needs root";
  }
  char name[] = "/tmp/gantry-ask-XXXXXX";
  const std::string folder = ::mkdtemp(name);
  const pid_t holder = HoldWhoIsIn(folder + "/pid", folder + "/held");
  ASSERT_GT(holder, 0);
  const auto said = AskProgram(
      {.program = "/bin/sh",
       .arguments = {"-c", "cd " + folder + "; echo $$ >pid; while [ ! -e held ]; do :; done; " +
                               "echo on; exec sleep 1000"},
       .max_bytes = 3,
       .limit = std::chrono::seconds(30)});
  EXPECT_EQ(said.value(), "on\n");
  const pid_t child = PidIn(folder + "/pid");
  EXPECT_EQ(waitpid(child, nullptr, WNOHANG), 0) << "it is still there";
  kill(holder, SIGKILL);
  waitpid(holder, nullptr, 0);
  // The next question reaps it: it has ended, and its parent is told as soon as nobody holds it.
  siginfo_t info{};
  EXPECT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(AskProgram({.program = "/bin/true", .arguments = {}}));
  EXPECT_EQ(waitpid(child, nullptr, WNOHANG), -1);
  EXPECT_TRUE(RemoveTree(folder));
}

}  // namespace
}  // namespace gantry
