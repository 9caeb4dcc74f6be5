// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <string>

#include <gtest/gtest.h>

#include <gantry/toolkit/process/pid_of.h>
#include <gantry/toolkit/process/pidfd.h>

#include "core/os/fs.h"
#include "core/os/spawn.h"
#include "tests/unit/os/spawned.h"

namespace gantry {
namespace {

using os::Child;
using os::SpawnProcess;
using os::TempDir;

TEST(Pidfd, SignalsAndTellsTheEnd) {
  auto spawned = SpawnProcess({.argv = {"/bin/sleep", "1000"}});
  ASSERT_TRUE(spawned);
  Child child(std::move(*spawned));
  EXPECT_FALSE(HasEnded(child.pidfd()));
  EXPECT_EQ(SendSignal(child.pidfd(), 12345).error().code, Code::kInvalidArgument);
  const auto pidfd = OpenPidfd(child.process());
  ASSERT_TRUE(pidfd);
  EXPECT_TRUE(SendSignal(pidfd->get(), SIGTERM));
  EXPECT_EQ(child.Wait(), 128U + SIGTERM);
  EXPECT_TRUE(HasEnded(pidfd->get()));
  EXPECT_EQ(SendSignal(pidfd->get(), SIGTERM).error().code, Code::kNotFound);
  EXPECT_EQ(OpenPidfd(child.process()).error().code, Code::kNotFound);
}

TEST(Pidfd, TheEndOfWhatWasReapedIsReadable) {
  auto spawned = SpawnProcess({.argv = {"/bin/sleep", "1000"}});
  ASSERT_TRUE(spawned);
  Child child(std::move(*spawned));
  const auto before = OpenEndOf(child.process());
  ASSERT_TRUE(before);
  pollfd ended = {.fd = before->get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&ended, 1, 0), 0);
  EXPECT_TRUE(SendSignal(child.pidfd(), SIGKILL));
  EXPECT_EQ(child.Wait(), 128U + SIGKILL);
  EXPECT_EQ(poll(&ended, 1, 0), 1);
  const auto after = OpenEndOf(child.process());
  ASSERT_TRUE(after);
  ended.fd = after->get();
  EXPECT_EQ(poll(&ended, 1, 0), 1);
}

TEST(Pidfd, TellsWhoseItIs) {
  auto spawned = SpawnProcess({.argv = {"/bin/sleep", "1000"}});
  ASSERT_TRUE(spawned);
  Child child(std::move(*spawned));
  const auto pidfd = OpenPidfd(child.process());
  ASSERT_TRUE(pidfd);
  EXPECT_EQ(PidOf(pidfd->get()).value(), child.process().pid);
  EXPECT_TRUE(SendSignal(pidfd->get(), SIGKILL));
  EXPECT_EQ(child.Wait(), 128U + SIGKILL);
  EXPECT_EQ(PidOf(pidfd->get()).error().code, Code::kNotFound);
  const UniqueFd other(dup(STDIN_FILENO));
  EXPECT_EQ(PidOf(other.get()).error().code, Code::kInvalidArgument);
}

TEST(Pidfd, IsNotOpenedForAReusedNumber) {
  ProcessId self = Identify({getpid()}).value();
  EXPECT_NE(self.start_time, 0U);
  EXPECT_TRUE(OpenPidfd(self));
  ++self.start_time;
  EXPECT_EQ(OpenPidfd(self).error().code, Code::kNotFound);
  self.start_time = 0;
  EXPECT_TRUE(OpenPidfd(self));
}

TEST(StartTime, IsFoundBehindAnyProgramName) {
  auto dir = TempDir::Create();
  const std::string program = dir->path() + "/a) R 1 (b";
  ASSERT_EQ(symlink("/bin/sleep", program.c_str()), 0);
  auto spawned = SpawnProcess({.argv = {program, "1000"}});
  ASSERT_TRUE(spawned);
  const Child child(std::move(*spawned));
  EXPECT_EQ(StartTimeOf({child.process().pid}).value(), child.process().start_time);
  EXPECT_GE(child.process().start_time, StartTimeOf({getpid()}).value());
}

TEST(ParentOf, IsTheProcessThatMadeIt) {
  auto spawned = SpawnProcess({.argv = {"/bin/sleep", "1000"}});
  ASSERT_TRUE(spawned);
  const Child child(std::move(*spawned));
  EXPECT_EQ(ParentOf({child.process().pid})->value, getpid());
  EXPECT_EQ(ParentOf({0}).error().code, Code::kNotFound);
}

}  // namespace
}  // namespace gantry
