// SPDX-License-Identifier: Apache-2.0
//
// Processes that are born in the pid namespace of another one, as each exec of a container is.
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/process/pidfd.h>

#include "core/os/spawn.h"
#include "tests/unit/os/proc_of.h"
#include "tests/unit/os/spawned.h"

namespace gantry::os {
namespace {

using testing::HasSubstr;

/// A container's first process.
class SpawnIntoAPidNamespace : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "needs root";
    }
    SpawnRequest request{.argv = {"/bin/sleep", "1000"}};
    request.new_namespaces = CLONE_NEWPID | CLONE_NEWUTS;
    auto spawned = SpawnProcess(request);
    ASSERT_TRUE(spawned) << spawned.error().message;
    init_.emplace(std::move(*spawned));
  }

  /// Every test collects what it has made.
  void TearDown() override {
    init_.reset();
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
    EXPECT_EQ(errno, ECHILD);
  }

  static SpawnRequest Joining(int fd, int type) {
    SpawnRequest request;
    request.namespaces = {{.fd = fd, .type = type}};
    return request;
  }

  std::optional<Child> init_;
};

TEST_F(SpawnIntoAPidNamespace, IsBornThereAndIsTheCallersChild) {
  const UniqueFd space = OpenNamespace(init_->process(), "pid");
  SpawnRequest request = Joining(space.get(), CLONE_NEWPID);
  request.argv = {"/bin/sleep", "1000"};
  auto spawned = SpawnProcess(request);
  ASSERT_TRUE(spawned) << spawned.error().message;
  const Child child(std::move(*spawned));
  EXPECT_EQ(LinkOf(child.process(), "pid"), LinkOf(init_->process(), "pid"));
  EXPECT_EQ(LinkOf(child.process(), "uts"), LinkOf(Self(), "uts"));
  EXPECT_EQ(StatusLine(child.process(), "NSpid:"),
            "NSpid:\t" + std::to_string(child.process().pid) + "\t2");
  EXPECT_EQ(StatusLine(child.process(), "PPid:"), "PPid:\t" + std::to_string(getpid()));
}

TEST_F(SpawnIntoAPidNamespace, ItsEndIsItsOwn) {
  const UniqueFd space = OpenNamespace(init_->process(), "pid");
  const auto result = RunScript("echo $$ $PPID; exit 7", Joining(space.get(), CLONE_NEWPID));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->output, "2 0\n");
  EXPECT_EQ(result->exit_code, 7U);
}

TEST_F(SpawnIntoAPidNamespace, OnePidfdJoinsSeveral) {
  const auto result = RunScript("readlink /proc/self/ns/uts; echo $$",
                                Joining(init_->pidfd(), CLONE_NEWPID | CLONE_NEWUTS));
  if (!result && result.error().sys_errno == EINVAL) {
    GTEST_SKIP() << "a kernel before 5.8: " << result.error().message;
  }
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->output, LinkOf(init_->process(), "uts") + "\n2\n");
}

TEST_F(SpawnIntoAPidNamespace, HasNewNamespacesBesideIt) {
  const UniqueFd space = OpenNamespace(init_->process(), "pid");
  SpawnRequest request = Joining(space.get(), CLONE_NEWPID);
  request.new_namespaces = CLONE_NEWUTS;
  const auto result = RunScript("hostname inside && hostname; echo $$", request);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->output, "inside\n2\n");
}

TEST_F(SpawnIntoAPidNamespace, EndsWithItsFirstProcess) {
  const UniqueFd space = OpenNamespace(init_->process(), "pid");
  SpawnRequest request = Joining(space.get(), CLONE_NEWPID);
  request.argv = {"/bin/sleep", "1000"};
  auto spawned = SpawnProcess(request);
  ASSERT_TRUE(spawned) << spawned.error().message;
  Child child(std::move(*spawned));
  ASSERT_TRUE(SendSignal(init_->pidfd(), SIGKILL));
  EXPECT_EQ(child.Wait(), 128U + SIGKILL);
}

TEST_F(SpawnIntoAPidNamespace, WhoseFirstProcessHasEndedSaysSo) {
  const UniqueFd space = OpenNamespace(init_->process(), "pid");
  ASSERT_TRUE(SendSignal(init_->pidfd(), SIGKILL));
  init_->Wait();
  const auto result = RunScript("true", Joining(space.get(), CLONE_NEWPID));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kResourceExhausted);
  EXPECT_EQ(result.error().message, "be born in the pid namespace: ENOMEM");
}

TEST_F(SpawnIntoAPidNamespace, IsNotJoinedAndMadeAtOnce) {
  SpawnRequest request = Joining(init_->pidfd(), CLONE_NEWPID | CLONE_NEWUTS);
  request.new_namespaces = CLONE_NEWPID;
  const auto result = RunScript("true", request);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kInvalidArgument);
  EXPECT_THAT(result.error().message, HasSubstr("joins and makes a namespace"));
}

}  // namespace
}  // namespace gantry::os
