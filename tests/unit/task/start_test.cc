// SPDX-License-Identifier: Apache-2.0
//
// Start of containers and execs, and Exec itself.
#include <fcntl.h>
#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/task/task_test.h"

namespace gantry::task {
namespace {

using testing::ElementsAre;

using TaskStart = TaskTest;

TEST_F(TaskStart, GivesItsStreamsToWhatIsRestored) {
  Announce("c1");
  pb::CreateTaskRequest request = CreateRequest("c1");
  request.set_checkpoint(dir_.path() + "/image");
  request.set_stdout(dir_.path() + "/out");
  ASSERT_EQ(mkfifo(request.stdout().c_str(), 0600), 0);
  const UniqueFd reader(open(request.stdout().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(Ask<pb::CreateTaskResponse>("Create", request, "c1"));
  EXPECT_TRUE(keeper_.stored.contains("1//io/stdout-w")) << "the process's end";
  ASSERT_TRUE(Start("c1"));
  EXPECT_TRUE(Until([&] { return !keeper_.stored.contains("1//io/stdout-w"); }));
}

TEST_F(TaskStart, RunsTheContainerOnce) {
  Run("c1");
  EXPECT_EQ(backend_.Count("start c1"), 1U);
  EXPECT_EQ(State("c1")->status(), pb::RUNNING);
  EXPECT_EQ(RecordOf("c1").state, State::kRunning);
  EXPECT_EQ(CodeOf(Start("c1")), Code::kFailedPrecondition);
  EXPECT_EQ(backend_.Count("start c1"), 1U);
}

TEST_F(TaskStart, AnswersAReplayOfWhatIsDone) {
  Run("c1");
  const auto again = Start("c1", true);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->pid(), 4001U);
  EXPECT_EQ(backend_.Count("start c1"), 1U);
}

TEST_F(TaskStart, HoldsAnEarlyExitBackUntilItIsPublished) {
  Announce("c1");
  ASSERT_TRUE(Create("c1"));
  const uint32_t wait = SendWait("c1");
  backend_.EndDuring("start c1", "c1", 5);
  ASSERT_TRUE(Start("c1"));
  EXPECT_EQ(TakeAs<pb::WaitResponse>(wait)->exit_status(), 5U);
  EXPECT_THAT(Events(), ElementsAre("create c1", "start c1", "exit c1 5"));
  EXPECT_EQ(State("c1")->status(), pb::STOPPED);
}

TEST_F(TaskStart, LeavesACreatedContainerWhenItFails) {
  Announce("c1");
  ASSERT_TRUE(Create("c1"));
  backend_.FailNext("start c1", Error{Code::kInternal, 0, "exec format error", {}});
  const auto started = Start("c1");
  EXPECT_EQ(CodeOf(started), Code::kInternal);
  EXPECT_EQ(State("c1")->status(), pb::CREATED);
  EXPECT_TRUE(Delete("c1"));
}

TEST_F(TaskStart, RefusesWhatHasEndedBeforeIt) {
  Announce("c1");
  ASSERT_TRUE(Create("c1"));
  End("c1", 1);
  EXPECT_EQ(CodeOf(Start("c1")), Code::kFailedPrecondition);
  EXPECT_EQ(State("c1")->status(), pb::STOPPED);
}

TEST_F(TaskStart, RefusesWhatEndsWhileItIsRecorded) {
  Announce("c1");
  ASSERT_TRUE(Create("c1"));
  // The end is known and not on record yet when the call comes.
  ASSERT_TRUE(backend_.End("c1", 1));
  Turn();
  const uint32_t start = SendStart("c1");
  const uint32_t wait = SendWait("c1");
  EXPECT_TRUE(Take(wait));
  EXPECT_EQ(CodeOf(Take(start)), Code::kFailedPrecondition);
  EXPECT_EQ(State("c1")->status(), pb::STOPPED);
  EXPECT_THAT(Events(), ElementsAre("create c1", "exit c1 1"));
}

TEST_F(TaskStart, IsUnknownForUnknownIds) {
  Announce("c1");
  const auto started = Start("c1");
  EXPECT_EQ(CodeOf(started), Code::kNotFound);
  EXPECT_EQ(MessageOf(started), "container not created: not found");
}

TEST_F(TaskStart, OfOneContainerDoesNotHoldUpAnother) {
  Announce("a");
  ASSERT_TRUE(Create("a"));
  backend_.Hold("start a");
  const uint32_t slow = SendStart("a");
  ASSERT_TRUE(Until([&] { return backend_.Held("start a"); }));
  Run("b");
  EXPECT_EQ(State("a")->status(), pb::CREATED);
  backend_.Release("start a");
  EXPECT_TRUE(Take(slow));
}

}  // namespace
}  // namespace gantry::task
