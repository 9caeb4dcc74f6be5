// SPDX-License-Identifier: Apache-2.0
//
// Kill, Pause, Resume, Update, Checkpoint, ResizePty, CloseIO.
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/process/process_id.h>

#include "tests/unit/task/child.h"
#include "tests/unit/task/task_test.h"

namespace gantry::task {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TaskSignals : public TaskTest {
 protected:
  Result<wire::Empty> Pause(const std::string& id) {
    pb::PauseRequest request;
    request.set_id(id);
    return Ask<wire::Empty>("Pause", request, id);
  }

  Result<wire::Empty> Resume(const std::string& id) {
    pb::ResumeRequest request;
    request.set_id(id);
    return Ask<wire::Empty>("Resume", request, id);
  }

  Result<wire::Empty> Update(const std::string& id, const std::string& json) {
    pb::UpdateTaskRequest request;
    request.set_id(id);
    request.mutable_resources()->set_value(json);
    return Ask<wire::Empty>("Update", request, id);
  }
};

TEST_F(TaskSignals, GoToTheBackend) {
  Run("c1");
  RunExec("c1/e1");
  EXPECT_TRUE(Kill("c1", 15));
  EXPECT_TRUE(Kill("c1/e1", 1));
  EXPECT_TRUE(Kill("c1", 9, true));
  EXPECT_EQ(backend_.Count("kill c1 15"), 1U);
  EXPECT_EQ(backend_.Count("kill c1/e1 1"), 1U);
  EXPECT_EQ(backend_.Count("killall c1 9"), 1U);
}

TEST_F(TaskSignals, GoToTheHostProcessWhereTheBackendLeavesThemOut) {
  Child child;
  const ProcessId process = keeper_.AddOrphan(child.pid(), child.start_time());
  backend_.BindTo("c1", HostPid{child.pid()});
  backend_.LeaveOut("kill");
  Run("c1");
  EXPECT_TRUE(Kill("c1", SIGKILL));
  ASSERT_TRUE(Until([&] { return child.Ended().has_value(); }));
  EXPECT_TRUE(WIFSIGNALED(*child.Ended()));
  const uint32_t wait = SendWait("c1");
  keeper_.End(process, *child.Ended());
  EXPECT_EQ(TakeAs<pb::WaitResponse>(wait)->exit_status(), 137U);
}

TEST_F(TaskSignals, ToWhatHasEndedAreNotFound) {
  Run("c1");
  RunExec("c1/e1");
  End("c1/e1", 0);
  EXPECT_EQ(MessageOf(Kill("c1/e1")), "process already finished: not found");
  End("c1", 0);
  const auto killed = Kill("c1");
  EXPECT_EQ(CodeOf(killed), Code::kNotFound);
  EXPECT_EQ(MessageOf(killed), "process already finished: not found");
}

TEST_F(TaskSignals, ToAllOfWhatHasEndedSucceed) {
  Run("c1");
  End("c1", 0);
  EXPECT_TRUE(Kill("c1", 9, true));
}

TEST_F(TaskSignals, ReachACreatedContainer) {
  Announce("c1");
  ASSERT_TRUE(Create("c1"));
  EXPECT_TRUE(Kill("c1", 9));
  EXPECT_EQ(backend_.Count("kill c1 9"), 1U);
}

TEST_F(TaskSignals, DoNotReachAnExecThatWasNotStarted) {
  Run("c1");
  ASSERT_TRUE(Exec("c1/e1"));
  EXPECT_EQ(CodeOf(Kill("c1/e1")), Code::kFailedPrecondition);
}

TEST_F(TaskSignals, ToAnExecWaitForItsStart) {
  Run("c1");
  ASSERT_TRUE(Exec("c1/e1"));
  backend_.Hold("start c1/e1");
  const uint32_t start = SendStart("c1/e1");
  ASSERT_TRUE(Until([&] { return backend_.Held("start c1/e1"); }));
  pb::KillRequest request;
  request.set_id("c1");
  request.set_exec_id("e1");
  request.set_signal(SIGKILL);
  const uint32_t kill = Send("Kill", request, "c1");
  // One that came behind it is through.
  EXPECT_TRUE(Kill("c1", SIGTERM));
  EXPECT_EQ(backend_.Count("kill c1/e1 9"), 0U);
  backend_.Release("start c1/e1");
  EXPECT_TRUE(Take(start));
  EXPECT_TRUE(Take(kill));
  EXPECT_EQ(backend_.Count("kill c1/e1 9"), 1U);
}

TEST_F(TaskSignals, DoNotWaitForTheContainersOtherCalls) {
  Announce("c1");
  ASSERT_TRUE(Create("c1"));
  backend_.Hold("start c1");
  const uint32_t start = SendStart("c1");
  ASSERT_TRUE(Until([&] { return backend_.Held("start c1"); }));
  EXPECT_TRUE(Kill("c1", 9));
  backend_.Release("start c1");
  EXPECT_TRUE(Take(start));
}

TEST_F(TaskSignals, AreCheckedForBeingOne) {
  Run("c1");
  EXPECT_EQ(CodeOf(Kill("c1", 1000)), Code::kInvalidArgument);
}

TEST_F(TaskSignals, OfUnknownProcessesAreNotFound) {
  Run("c1");
  EXPECT_EQ(MessageOf(Kill("c1/nope")), "process does not exist nope: not found");
}

TEST_F(TaskSignals, PauseAndResumeOnce) {
  Run("c1");
  EXPECT_EQ(CodeOf(Resume("c1")), Code::kFailedPrecondition);
  EXPECT_TRUE(Pause("c1"));
  EXPECT_EQ(State("c1")->status(), pb::PAUSED);
  EXPECT_EQ(CodeOf(Pause("c1")), Code::kFailedPrecondition);
  EXPECT_TRUE(Resume("c1"));
  EXPECT_EQ(State("c1")->status(), pb::RUNNING);
  EXPECT_THAT(Events(), ElementsAre("create c1", "start c1", "paused c1", "resumed c1"));
}

TEST_F(TaskSignals, PauseSaysWhatTheBackendLacks) {
  Run("c1");
  backend_.LeaveOut("pause");
  EXPECT_EQ(CodeOf(Pause("c1")), Code::kUnimplemented);
  EXPECT_EQ(State("c1")->status(), pb::RUNNING);
}

TEST_F(TaskSignals, PauseOfWhatEndsMeanwhileLeavesItStopped) {
  Run("c1");
  backend_.EndDuring("pause c1", "c1", 3);
  const uint32_t wait = SendWait("c1");
  IgnoreError(Pause("c1"), "either answer is right");
  EXPECT_TRUE(Take(wait));
  EXPECT_EQ(State("c1")->status(), pb::STOPPED);
}

TEST_F(TaskSignals, UpdateChecksAndPassesOn) {
  Run("c1");
  EXPECT_EQ(CodeOf(Update("c1", "nonsense")), Code::kInvalidArgument);
  EXPECT_TRUE(Update("c1", R"({"pids":{"limit":5}})"));
  EXPECT_EQ(backend_.Count(R"(update c1 {"pids":{"limit":5}})"), 1U);
  End("c1", 0);
  EXPECT_EQ(CodeOf(Update("c1", "{}")), Code::kFailedPrecondition);
}

TEST_F(TaskSignals, CheckpointFillsAFolder) {
  Run("c1");
  pb::CheckpointTaskRequest request;
  request.set_id("c1");
  request.set_path(dir_.path() + "/image");
  EXPECT_TRUE(Ask<wire::Empty>("Checkpoint", request, "c1"));
  EXPECT_EQ(backend_.Count("checkpoint c1 " + dir_.path() + "/image"), 1U);
}

TEST_F(TaskSignals, ResizeWithoutATerminalIsNothing) {
  Run("c1");
  pb::ResizePtyRequest request;
  request.set_id("c1");
  request.set_width(80);
  request.set_height(25);
  EXPECT_TRUE(Ask<wire::Empty>("ResizePty", request, "c1"));
  EXPECT_EQ(backend_.Count("resize c1 80x25"), 0U);
}

TEST_F(TaskSignals, CloseIOTellsTheBackendOnlyOfStdin) {
  Run("c1");
  pb::CloseIORequest request;
  request.set_id("c1");
  EXPECT_TRUE(Ask<wire::Empty>("CloseIO", request, "c1"));
  EXPECT_EQ(backend_.Count("closestdin c1"), 0U);
  request.set_stdin(true);
  EXPECT_TRUE(Ask<wire::Empty>("CloseIO", request, "c1"));
  EXPECT_EQ(backend_.Count("closestdin c1"), 1U);
  End("c1", 0);
  EXPECT_TRUE(Ask<wire::Empty>("CloseIO", request, "c1"));
}

TEST_F(TaskSignals, AnExceptionOfTheBackendHarmsNobodyElse) {
  Run("c1");
  backend_.ThrowNext("kill c1");
  const auto killed = Kill("c1", 15);
  EXPECT_EQ(CodeOf(killed), Code::kInternal);
  EXPECT_THAT(MessageOf(killed), HasSubstr("threw"));
  EXPECT_TRUE(Kill("c1", 15));
}

}  // namespace
}  // namespace gantry::task
