// SPDX-License-Identifier: Apache-2.0
//
// Execs, from Exec to Delete.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/config/config.h"
#include "tests/unit/task/task_test.h"

namespace gantry::task {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using TaskExec = TaskTest;

TEST_F(TaskExec, IsOnlyRegisteredAtFirst) {
  Run("c1");
  ASSERT_TRUE(Exec("c1/e1"));
  const auto state = State("c1/e1");
  ASSERT_TRUE(state);
  EXPECT_EQ(state->id(), "e1");
  EXPECT_EQ(state->status(), pb::CREATED);
  EXPECT_EQ(state->pid(), 0U);
  EXPECT_EQ(backend_.Count("exec c1 e1"), 0U);
}

TEST_F(TaskExec, RunsAndEnds) {
  Run("c1");
  RunExec("c1/e1");
  EXPECT_EQ(State("c1/e1")->status(), pb::RUNNING);
  EXPECT_EQ(State("c1/e1")->pid(), 4002U);
  End("c1/e1", 7);
  const auto state = State("c1/e1");
  EXPECT_EQ(state->status(), pb::STOPPED);
  EXPECT_EQ(state->exit_status(), 7U);
  const auto deleted = Delete("c1/e1");
  ASSERT_TRUE(deleted);
  EXPECT_EQ(deleted->exit_status(), 7U);
  EXPECT_EQ(deleted->pid(), 4002U);
  EXPECT_THAT(Events(), ElementsAre("create c1", "start c1", "exec-added c1/e1",
                                    "exec-started c1/e1", "exit c1/e1 7"));
}

TEST_F(TaskExec, RefusesAnIdThatIsThere) {
  Run("c1");
  ASSERT_TRUE(Exec("c1/e1"));
  EXPECT_EQ(CodeOf(Exec("c1/e1")), Code::kAlreadyExists);
}

TEST_F(TaskExec, FreesItsIdWhenItIsDeleted) {
  Run("c1");
  ASSERT_TRUE(Exec("c1/e1"));
  ASSERT_TRUE(Delete("c1/e1"));
  const auto state = State("c1/e1");
  EXPECT_EQ(CodeOf(state), Code::kNotFound);
  EXPECT_EQ(MessageOf(state), "process does not exist e1: not found");
  EXPECT_TRUE(Exec("c1/e1"));
}

TEST_F(TaskExec, AnswersAReplayOfWhatIsDone) {
  Run("c1");
  ASSERT_TRUE(Exec("c1/e1"));
  EXPECT_TRUE(Exec("c1/e1", true));
}

TEST_F(TaskExec, NeedsARunningContainer) {
  Announce("c1");
  ASSERT_TRUE(Create("c1"));
  EXPECT_EQ(CodeOf(Exec("c1/e1")), Code::kFailedPrecondition);
  ASSERT_TRUE(Start("c1"));
  End("c1", 0);
  EXPECT_EQ(CodeOf(Exec("c1/e1")), Code::kFailedPrecondition);
}

TEST_F(TaskExec, RefusesAStartAfterItsContainersEnd) {
  Run("c1");
  ASSERT_TRUE(Exec("c1/e1"));
  End("c1", 0);
  const auto started = Start("c1/e1");
  EXPECT_EQ(CodeOf(started), Code::kFailedPrecondition);
  EXPECT_THAT(MessageOf(started), HasSubstr("container c1 init process is not running"));
}

TEST_F(TaskExec, RefusesIdsAndSpecsThatAreNone) {
  Run("c1");
  EXPECT_EQ(CodeOf(Exec("c1/../x")), Code::kInvalidArgument);
  pb::ExecProcessRequest request;
  request.set_id("c1");
  request.set_exec_id("e1");
  for (const std::string spec : {"", "{", R"({"args":[]})", "[1]"}) {
    request.mutable_spec()->set_value(spec);
    EXPECT_EQ(CodeOf(Ask<wire::Empty>("Exec", request, "c1")), Code::kInvalidArgument) << spec;
  }
  EXPECT_EQ(CodeOf(State("c1/e1")), Code::kNotFound);
}

TEST_F(TaskExec, IsToldToBeCreatedWhenItsStartFails) {
  Run("c1");
  ASSERT_TRUE(Exec("c1/e1"));
  const uint32_t wait = SendWait("c1/e1");
  backend_.FailNext("exec c1", Error{Code::kInternal, 0, "no such file", {}});
  const auto started = Start("c1/e1");
  EXPECT_THAT(MessageOf(started), HasSubstr("no such file"));
  EXPECT_TRUE(Take(wait));
  EXPECT_EQ(State("c1/e1")->status(), pb::CREATED);
  EXPECT_EQ(CodeOf(Start("c1/e1")), Code::kFailedPrecondition) << "a second time";
  // Also to whom another engine tells.
  RestartEngine();
  EXPECT_EQ(State("c1/e1")->status(), pb::CREATED);
  EXPECT_EQ(CodeOf(Start("c1/e1", true)), Code::kFailedPrecondition);
  EXPECT_TRUE(Take(SendWait("c1/e1")));
  const auto deleted = Delete("c1/e1");
  ASSERT_TRUE(deleted) << deleted.error().message;
  EXPECT_EQ(deleted->pid(), 0U);
  EXPECT_THAT(Events(), ElementsAre("create c1", "start c1", "exec-added c1/e1"));
}

TEST_F(TaskExec, IsToldToBeCreatedWhenItsContainerEndsFirst) {
  Run("c1");
  ASSERT_TRUE(Exec("c1/e1"));
  ASSERT_TRUE(Exec("c1/e2"));
  // While the first one is being started.
  backend_.EndDuring("exec c1", "c1", 137);
  backend_.FailNext("exec c1", Error{Code::kNotFound, 0, "it is gone", {}});
  const uint32_t wait = SendWait("c1");
  EXPECT_THAT(MessageOf(Start("c1/e1")), HasSubstr("it is gone"));
  ASSERT_TRUE(Take(wait));
  for (const char* exec : {"c1/e1", "c1/e2"}) {
    EXPECT_EQ(CodeOf(Start(exec)), Code::kFailedPrecondition);
    EXPECT_EQ(State(exec)->status(), pb::CREATED);
    EXPECT_TRUE(Delete(exec));
  }
}

TEST_F(TaskExec, HoldsAnEarlyExitBackUntilItsStartIsPublished) {
  Run("c1");
  ASSERT_TRUE(Exec("c1/e1"));
  backend_.EndDuring("start c1/e1", "c1/e1", 0);
  ASSERT_TRUE(Start("c1/e1"));
  EXPECT_TRUE(Take(SendWait("c1/e1")));
  EXPECT_THAT(Events(), ElementsAre("create c1", "start c1", "exec-added c1/e1",
                                    "exec-started c1/e1", "exit c1/e1 0"));
}

TEST_F(TaskExec, HasALimitPerContainer) {
  around_.config.limits.max_execs_per_container = 2;
  RestartEngine();
  Run("c1");
  EXPECT_TRUE(Exec("c1/e1"));
  EXPECT_TRUE(Exec("c1/e2"));
  EXPECT_EQ(CodeOf(Exec("c1/e3")), Code::kResourceExhausted);
  ASSERT_TRUE(Delete("c1/e1"));
  EXPECT_TRUE(Exec("c1/e3"));
}

TEST_F(TaskExec, IsShownAsPausedWithItsContainer) {
  Run("c1");
  RunExec("c1/e1");
  pb::PauseRequest pause;
  pause.set_id("c1");
  ASSERT_TRUE(Ask<wire::Empty>("Pause", pause, "c1"));
  EXPECT_EQ(State("c1/e1")->status(), pb::PAUSED);
}

TEST_F(TaskExec, CannotBeDeletedWhileItRuns) {
  Run("c1");
  RunExec("c1/e1");
  EXPECT_EQ(CodeOf(Delete("c1/e1")), Code::kFailedPrecondition);
}

TEST_F(TaskExec, StartsDoNotWaitForEachOther) {
  Run("c1");
  ASSERT_TRUE(Exec("c1/slow"));
  backend_.Hold("start c1/slow");
  const uint32_t slow = SendStart("c1/slow");
  ASSERT_TRUE(Until([&] { return backend_.Held("start c1/slow"); }));
  RunExec("c1/fast");
  backend_.Release("start c1/slow");
  EXPECT_TRUE(Take(slow));
}

}  // namespace
}  // namespace gantry::task
