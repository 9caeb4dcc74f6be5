// SPDX-License-Identifier: Apache-2.0
//
// Delete, and the keeper's call that ends an instance.
#include <csignal>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/process/process_id.h>

#include "tests/unit/task/task_test.h"

namespace gantry::task {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using TaskDelete = TaskTest;

TEST_F(TaskDelete, AnswersHowItEndedAndLeavesNothing) {
  Run("c1");
  End("c1", 12);
  const auto deleted = Delete("c1");
  ASSERT_TRUE(deleted) << deleted.error().message;
  EXPECT_EQ(deleted->exit_status(), 12U);
  EXPECT_EQ(deleted->pid(), 4001U);
  EXPECT_EQ(deleted->exited_at().seconds(), 1'700'000'000);
  EXPECT_FALSE(std::filesystem::exists(store::PathOf(dir_.path() + "/c1")));
  EXPECT_EQ(backend_.Count("delete c1"), 1U);
  EXPECT_EQ(backend_.Count("shutdown sandbox c1"), 1U);
  EXPECT_THAT(Events(), ElementsAre("create c1", "start c1", "exit c1 12", "delete c1"));
}

TEST_F(TaskDelete, LeavesTheValuesWithTheKeeper) {
  Run("c1");
  End("c1", 12);
  ASSERT_TRUE(Delete("c1"));
  ASSERT_TRUE(Until([&] { return !keeper_.forgotten.empty(); }));
  EXPECT_EQ(keeper_.forgotten[0].pid, 4001U);
  EXPECT_EQ(keeper_.forgotten[0].status, 12U);
}

TEST_F(TaskDelete, IsNotFoundTheSecondTime) {
  Run("c1");
  End("c1", 0);
  const uint32_t first = SendDelete("c1");
  const uint32_t second = SendDelete("c1");
  EXPECT_TRUE(Take(first));
  EXPECT_EQ(CodeOf(Take(second)), Code::kNotFound);
  const auto third = Delete("c1");
  EXPECT_EQ(MessageOf(third), "container not created: not found");
}

TEST_F(TaskDelete, RefusesWhatRuns) {
  Run("c1");
  EXPECT_EQ(CodeOf(Delete("c1")), Code::kFailedPrecondition);
  EXPECT_EQ(State("c1")->status(), pb::RUNNING);
}

TEST_F(TaskDelete, TakesWhatWasNeverStarted) {
  Announce("c1");
  ASSERT_TRUE(Create("c1"));
  const auto deleted = Delete("c1");
  ASSERT_TRUE(deleted);
  EXPECT_EQ(deleted->exit_status(), 0U);
  EXPECT_EQ(CodeOf(State("c1")), Code::kNotFound);
}

TEST_F(TaskDelete, OfWhatWasNeverStartedEndsItsWaits) {
  Announce("c1");
  ASSERT_TRUE(Create("c1"));
  const uint32_t wait = SendWait("c1");
  ASSERT_TRUE(Delete("c1"));
  Settle();
  EXPECT_TRUE(Answered(wait));
}

TEST_F(TaskDelete, FollowsAnExitThatIsBeingRecorded) {
  Announce("c1");
  ASSERT_TRUE(Create("c1"));
  ASSERT_TRUE(backend_.End("c1", 5));
  Turn();
  const auto deleted = Delete("c1");
  ASSERT_TRUE(deleted);
  EXPECT_EQ(deleted->exit_status(), 5U);
  EXPECT_THAT(Events(), ElementsAre("create c1", "exit c1 5", "delete c1"));
}

TEST_F(TaskDelete, StaysWhenTheBackendFails) {
  Run("c1");
  End("c1", 3);
  backend_.FailNext("delete c1", Error{Code::kInternal, 0, "device or resource busy", {}});
  EXPECT_EQ(CodeOf(Delete("c1")), Code::kInternal);
  EXPECT_EQ(State("c1")->exit_status(), 3U);
  EXPECT_TRUE(Delete("c1"));
}

TEST_F(TaskDelete, LetsTheSameIdBeCreatedAgain) {
  Run("c1");
  End("c1", 0);
  ASSERT_TRUE(Delete("c1"));
  keeper_.RemoveInstance(1);
  Run("c1");
  EXPECT_EQ(State("c1")->status(), pb::RUNNING);
}

TEST_F(TaskDelete, EndsTheSandboxWithItsLastContainer) {
  Run("pod");
  Run("a", "pod");
  End("pod", 0);
  ASSERT_TRUE(Delete("pod"));
  EXPECT_EQ(backend_.Count("shutdown sandbox pod"), 0U);
  End("a", 0);
  ASSERT_TRUE(Delete("a"));
  EXPECT_EQ(backend_.Count("shutdown sandbox pod"), 1U);
}

TEST_F(TaskDelete, LeavesTheSandboxToOneWhoseRemovalFailed) {
  Run("pod");
  Run("a", "pod");
  backend_.FailNext("delete a", Error{Code::kInternal, 0, "device or resource busy", {}});
  keeper_.RemoveInstance(2);
  ASSERT_TRUE(Until([&] { return engine_->tasks().containers().size() == 1; }));
  ASSERT_EQ(backend_.Count("delete a"), 1U);
  End("pod", 0);
  ASSERT_TRUE(Delete("pod"));
  EXPECT_EQ(backend_.Count("shutdown sandbox pod"), 0U) << "something of a may be in there";
}

TEST_F(TaskDelete, TellsOfTheEndOfWhatGoesWithItsPod) {
  Run("pod");
  Run("a", "pod");
  End("pod", 137);
  ASSERT_TRUE(Delete("pod"));
  keeper_.RemoveInstance(1);
  keeper_.RemoveInstance(2, true);
  ASSERT_TRUE(Until([&] { return backend_.Count("killall a 9") == 1; }));
  ASSERT_TRUE(backend_.End("a", 137));
  EXPECT_TRUE(Until([&] { return Events().back() == "exit a 137"; })) << Events().back();
  EXPECT_TRUE(Until([&] { return backend_.Count("shutdown sandbox pod") == 1; }));
  EXPECT_EQ(backend_.Count("delete a"), 1U);
  EXPECT_EQ(CodeOf(State("a")), Code::kNotFound);
  EXPECT_EQ(CodeOf(Kill("a")), Code::kNotFound);
  EXPECT_EQ(CodeOf(Delete("a")), Code::kNotFound);
}

TEST_F(TaskDelete, HandsTheSandboxesStateToAnotherContainer) {
  backend_.SaveState("sandbox state", "");
  Run("pod");
  Run("a", "pod");
  EXPECT_EQ(RecordOf("pod").blobs["sandbox"], "sandbox state");
  End("pod", 0);
  ASSERT_TRUE(Delete("pod"));
  EXPECT_EQ(RecordOf("a").blobs["sandbox"], "sandbox state");
}

TEST_F(TaskDelete, FreesTheBackendsObjectsBeforeItAnswers) {
  Run("c1");
  RunExec("c1/e1");
  End("c1/e1", 0);
  End("c1", 0);
  ASSERT_TRUE(Delete("c1"));
  // The fakes know of no process any more.
  EXPECT_FALSE(backend_.End("c1", 0));
}

TEST_F(TaskDelete, AnswersAReplayFromWhatTheKeeperWasTold) {
  Run("c1");
  End("c1", 12);
  ASSERT_TRUE(Delete("c1"));
  ASSERT_TRUE(Until([&] { return !keeper_.forgotten.empty(); }));
  RestartEngine();
  const auto again = Delete("c1", true);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->exit_status(), 12U);
  EXPECT_EQ(again->pid(), 4001U);
  EXPECT_EQ(CodeOf(Delete("c1")), Code::kNotFound);
}

TEST_F(TaskDelete, ByTheKeeperEndsWhatRuns) {
  Run("c1");
  RunExec("c1/e1");
  keeper_.AskToDelete(77, 1);
  ASSERT_TRUE(Until([&] { return !keeper_.deleted.empty(); }));
  EXPECT_EQ(keeper_.deleted[0].tag, 77U);
  EXPECT_EQ(keeper_.deleted[0].code, 0);
  EXPECT_EQ(keeper_.deleted[0].pid, 4001U);
  EXPECT_EQ(keeper_.deleted[0].status, 137U);
  EXPECT_EQ(backend_.Count("delete c1"), 1U);
  EXPECT_EQ(CodeOf(State("c1")), Code::kNotFound);
  Settle();
  EXPECT_THAT(Events(), testing::Not(testing::Contains(testing::StartsWith("exit c1 "))));
}

TEST_F(TaskDelete, ByTheKeeperAcknowledgesEveryExit) {
  const ProcessId init = keeper_.AddOrphan(600);
  const ProcessId exec = keeper_.AddOrphan(601);
  backend_.BindTo("c1", HostPid{600});
  backend_.BindTo("c1/e1", HostPid{601});
  Run("c1");
  RunExec("c1/e1");
  keeper_.AskToDelete(77, 1);
  ASSERT_TRUE(Until([&] { return !keeper_.deleted.empty(); }));
  EXPECT_THAT(keeper_.acknowledged, testing::UnorderedElementsAre(init, exec));
}

TEST_F(TaskDelete, ByTheKeeperCutShortTellsHowItHadEnded) {
  const ProcessId init = keeper_.AddOrphan(600);
  backend_.BindTo("c1", HostPid{600});
  Run("c1");
  RunExec("c1/e1");
  // The init's end goes on record behind the exec's, which does not come.
  keeper_.End(init, 12 << 8);
  backend_.Hold("shutdown sandbox c1");
  keeper_.AskToDelete(77, 1);
  ASSERT_TRUE(Until([&] { return backend_.Held("shutdown sandbox c1"); }));
  Turn();
  EXPECT_THAT(keeper_.acknowledged, IsEmpty()) << "its end is on no record yet";
  backend_.FailNext("recover c1", Error{Code::kNotFound, 0, "it has no state of it", {}});
  RestartEngine();
  backend_.Release("shutdown sandbox c1");
  keeper_.AskToDelete(78, 1);
  ASSERT_TRUE(Until([&] { return !keeper_.deleted.empty(); }));
  EXPECT_EQ(keeper_.deleted[0].tag, 78U);
  EXPECT_EQ(keeper_.deleted[0].status, 12U);
  EXPECT_THAT(keeper_.acknowledged, testing::Contains(init));
}

TEST_F(TaskDelete, ByTheKeeperTellsHowItHadEnded) {
  Run("c1");
  End("c1", 4);
  keeper_.AskToDelete(1, 1);
  ASSERT_TRUE(Until([&] { return !keeper_.deleted.empty(); }));
  EXPECT_EQ(keeper_.deleted[0].status, 4U);
}

TEST_F(TaskDelete, ByTheKeeperOfWhatWasNeverCreatedSucceeds) {
  Announce("c1");
  keeper_.AskToDelete(1, 1);
  ASSERT_TRUE(Until([&] { return !keeper_.deleted.empty(); }));
  EXPECT_EQ(keeper_.deleted[0].pid, link::kNoPid);
  EXPECT_EQ(keeper_.deleted[0].code, 0);
}

TEST_F(TaskDelete, ByTheKeeperEndsWaits) {
  Run("c1");
  const uint32_t wait = SendWait("c1");
  keeper_.AskToDelete(1, 1);
  ASSERT_TRUE(Until([&] { return !keeper_.deleted.empty(); }));
  Settle();
  EXPECT_TRUE(Answered(wait));
}

TEST_F(TaskDelete, FreesWhatTheKeeperHasRemoved) {
  Run("c1");
  keeper_.RemoveInstance(1);
  EXPECT_TRUE(Until([&] { return engine_->tasks().containers().size() == 0; }));
  EXPECT_EQ(backend_.Count("delete c1"), 1U);
  EXPECT_EQ(backend_.Count("shutdown sandbox c1"), 1U);
}

TEST_F(TaskDelete, PutsAnExitOnRecordThatCouldNotBeBefore) {
  Run("c1");
  const std::string record = store::PathOf(dir_.path() + "/c1");
  std::filesystem::rename(record, record + ".aside");
  ASSERT_TRUE(os::MakeDirs(record + "/in/the/way", 0700));
  End("c1", 7);
  ASSERT_TRUE(Take(SendWait("c1")));
  std::filesystem::remove_all(record);
  std::filesystem::rename(record + ".aside", record);
  ASSERT_FALSE(RecordOf("c1").init.exited);
  backend_.Hold("delete c1");
  const uint32_t remove = SendDelete("c1");
  ASSERT_TRUE(Until([&] { return backend_.Held("delete c1"); }));
  EXPECT_EQ(RecordOf("c1").init.exit_status, 7U) << "for an engine that has to finish it";
  backend_.Release("delete c1");
  EXPECT_EQ(TakeAs<pb::DeleteResponse>(remove)->exit_status(), 7U);
}

TEST_F(TaskDelete, OfARemovedOneIsOverBeforeTheIdIsUsedAgain) {
  Run("c1");
  backend_.Hold("delete c1");
  keeper_.RemoveInstance(1);
  ASSERT_TRUE(Until([&] { return backend_.Held("delete c1"); }));
  Announce("c1");
  const uint32_t create = Send("Create", CreateRequest("c1"), "c1");
  Turn();
  EXPECT_EQ(backend_.Count("create c1"), 1U);
  backend_.Release("delete c1");
  EXPECT_TRUE(Take(create));
  EXPECT_EQ(backend_.Count("create c1"), 2U);
}

}  // namespace
}  // namespace gantry::task
