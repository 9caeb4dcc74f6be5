// SPDX-License-Identifier: Apache-2.0
//
// The engine is killed between an effect and its event: the next one publishes
// what may be missing, in the order create, start, exit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/task/task_test.h"

namespace gantry::task {
namespace {

using testing::ElementsAre;

class RecoveryEvents : public TaskTest {
 protected:
  /// As an engine leaves the record that dies before it has published the exit.
  void LeaveUnpublished(const std::string& id) {
    store::Record record = RecordOf(id);
    record.init.unpublished = true;
    ASSERT_TRUE(store::Write(record));
  }

  /// The backend has started it, and its engine dies before that returns.
  void DieInStart(const std::string& name) {
    backend_.Hold("start " + name);
    SendStart(name);
    ASSERT_TRUE(Until([&] { return backend_.Held("start " + name); }));
    RestartEngine();
    backend_.Release("start " + name);
  }
};

TEST_F(RecoveryEvents, AnExitWithoutAHostProcessIsRepeatedUntilItIsKnownToBeOut) {
  Run("c1");
  End("c1", 9);
  Settle();
  EXPECT_FALSE(RecordOf("c1").init.unpublished);
  LeaveUnpublished("c1");
  RestartEngine();
  EXPECT_EQ(TakeAs<pb::WaitResponse>(SendWait("c1"))->exit_status(), 9U);
  Settle();
  EXPECT_THAT(Events(), ElementsAre("create c1", "start c1", "exit c1 9", "exit c1 9"));
  RestartEngine();
  EXPECT_EQ(TakeAs<pb::WaitResponse>(SendWait("c1"))->exit_status(), 9U);
  EXPECT_THAT(Events(), ElementsAre("create c1", "start c1", "exit c1 9", "exit c1 9"));
}

TEST_F(RecoveryEvents, AnExitThatNobodyWillEverTellIsToldByTheCore) {
  Run("c1");
  backend_.FailNext("recover c1", Error{Code::kInternal, 0, "state file is gone", {}});
  RestartEngine();
  EXPECT_EQ(TakeAs<pb::WaitResponse>(SendWait("c1"))->exit_status(), 255U);
  const auto deleted = Delete("c1");
  ASSERT_TRUE(deleted) << deleted.error().message;
  EXPECT_GT(deleted->exited_at().seconds(), 0);
  EXPECT_THAT(Events(), ElementsAre("create c1", "start c1", "exit c1 255", "delete c1"));
}

TEST_F(RecoveryEvents, TheSameForAnExec) {
  Run("c1");
  RunExec("c1/e1");
  backend_.FailNext("recover c1/e1", Error{Code::kInternal, 0, "it is not there", {}});
  RestartEngine();
  EXPECT_EQ(TakeAs<pb::WaitResponse>(SendWait("c1/e1"))->exit_status(), 255U);
  EXPECT_EQ(State("c1")->status(), pb::RUNNING);
}

TEST_F(RecoveryEvents, AStartThatComesAgainIsPublishedBeforeTheExit) {
  Announce("c1");
  ASSERT_TRUE(Create("c1"));
  backend_.SetEnded("c1", 4);
  backend_.Hold("recover c1");
  DieInStart("c1");
  const uint32_t wait = SendWait("c1");
  pb::StartRequest request;
  request.set_id("c1");
  const uint32_t start = Send("Start", request, "c1", true);
  backend_.Release("recover c1");
  EXPECT_TRUE(Take(start));
  EXPECT_EQ(TakeAs<pb::WaitResponse>(wait)->exit_status(), 4U);
  EXPECT_THAT(Events(), ElementsAre("create c1", "start c1", "exit c1 4"));
}

TEST_F(RecoveryEvents, AnExitIsNotHeldBackForAStartWhoseCallerHasGone) {
  Announce("c1");
  ASSERT_TRUE(Create("c1"));
  backend_.SetEnded("c1", 4);
  DieInStart("c1");
  EXPECT_EQ(TakeAs<pb::WaitResponse>(SendWait("c1"))->exit_status(), 4U);
}

TEST_F(RecoveryEvents, AnExecIsNotHeldBackForAStartWhoseCallerHasGone) {
  Run("c1");
  ASSERT_TRUE(Exec("c1/e1"));
  DieInStart("c1/e1");
  EXPECT_EQ(State("c1/e1")->status(), pb::RUNNING);
  End("c1/e1", 2);
  EXPECT_THAT(Events(), ElementsAre("create c1", "start c1", "exec-added c1/e1",
                                    "exec-started c1/e1", "exit c1/e1 2"));
}

TEST_F(RecoveryEvents, AnExecsStartThatComesAgainIsPublishedBeforeItsExit) {
  Run("c1");
  ASSERT_TRUE(Exec("c1/e1"));
  backend_.SetEnded("c1/e1", 3);
  backend_.Hold("recover c1/e1");
  DieInStart("c1/e1");
  pb::StartRequest request;
  request.set_id("c1");
  request.set_exec_id("e1");
  const uint32_t start = Send("Start", request, "c1", true);
  backend_.Release("recover c1/e1");
  EXPECT_TRUE(Take(start));
  EXPECT_EQ(TakeAs<pb::WaitResponse>(SendWait("c1/e1"))->exit_status(), 3U);
  EXPECT_THAT(Events(), ElementsAre("create c1", "start c1", "exec-added c1/e1",
                                    "exec-started c1/e1", "exit c1/e1 3"));
}

}  // namespace
}  // namespace gantry::task
