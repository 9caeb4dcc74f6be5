// SPDX-License-Identifier: Apache-2.0
//
// Create: what it leaves on success, and that it leaves nothing on failure.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "core/config/config.h"
#include "core/link/messages.h"
#include "tests/unit/task/task_test.h"

namespace gantry::task {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class TaskCreate : public TaskTest {
 protected:
  /// Nothing of a container may be seen any more.
  void ExpectNothingLeft(const std::string& id) {
    EXPECT_EQ(CodeOf(State(id)), Code::kNotFound);
    EXPECT_FALSE(std::filesystem::exists(store::PathOf(dir_.path() + "/" + id)));
    Settle();
    EXPECT_THAT(Events(), IsEmpty());
    EXPECT_THAT(keeper_.stored, IsEmpty());
  }
};

TEST_F(TaskCreate, AnswersThePidThatTheBackendTold) {
  Announce("c1");
  const auto created = Create("c1");
  ASSERT_TRUE(created) << created.error().message;
  EXPECT_EQ(created->pid(), 4001U);
  const auto state = State("c1");
  ASSERT_TRUE(state);
  EXPECT_EQ(state->status(), pb::CREATED);
  EXPECT_EQ(state->pid(), 4001U);
  EXPECT_EQ(state->bundle(), dir_.path() + "/c1");
}

TEST_F(TaskCreate, IsOnRecordBeforeItIsAcknowledged) {
  Announce("c1");
  ASSERT_TRUE(Create("c1"));
  const store::Record record = RecordOf("c1");
  EXPECT_EQ(record.state, State::kCreated);
  EXPECT_EQ(record.backend, "runc");
  EXPECT_EQ(record.handler, "runc") << "the default at that time, whatever it will be later";
  EXPECT_EQ(record.init.shown_pid.value, 4001);
}

TEST_F(TaskCreate, MakesTheSandboxBeforeTheContainer) {
  Announce("c1");
  ASSERT_TRUE(Create("c1"));
  EXPECT_THAT(backend_.Calls(), ElementsAre("create sandbox c1", "start sandbox c1", "create c1"));
  EXPECT_THAT(Events(), ElementsAre("create c1"));
}

TEST_F(TaskCreate, SharesASandboxWithinAGroup) {
  Announce("pod");
  Announce("a", "pod");
  ASSERT_TRUE(Create("pod"));
  ASSERT_TRUE(Create("a"));
  EXPECT_EQ(backend_.Count("create sandbox pod"), 1U);
  EXPECT_EQ(RecordOf("a").sandbox_id, "pod");
}

TEST_F(TaskCreate, OfAMemberBringsNoBundleBack) {
  const std::string pod = Announce("pod");
  Announce("a", "pod");
  ASSERT_TRUE(Create("pod"));
  std::filesystem::remove_all(pod);
  const auto created = Create("a");
  EXPECT_EQ(CodeOf(created), Code::kNotFound);
  EXPECT_THAT(MessageOf(created), HasSubstr(pod));
  EXPECT_FALSE(std::filesystem::exists(pod));
}

TEST_F(TaskCreate, TakesAContainerThatWasNotAnnounced) {
  Announce("pod");
  ASSERT_TRUE(Create("pod"));
  MakeBundle("b");
  ASSERT_TRUE(Create("b", "pod"));
  EXPECT_EQ(keeper_.instances.size(), 2U);
}

TEST_F(TaskCreate, RefusesAnIdThatIsThere) {
  Announce("c1");
  ASSERT_TRUE(Create("c1"));
  const auto again = Create("c1");
  EXPECT_EQ(CodeOf(again), Code::kAlreadyExists);
  EXPECT_EQ(CodeOf(State("c1")), Code::kOk);
}

TEST_F(TaskCreate, RefusesAnIdWhoseCreateIsUnderWay) {
  Announce("c1");
  backend_.Hold("create c1");
  const uint32_t first = Send("Create", CreateRequest("c1"), "c1");
  ASSERT_TRUE(Until([&] { return backend_.Held("create c1"); }));
  EXPECT_EQ(CodeOf(Create("c1")), Code::kAlreadyExists);
  backend_.Release("create c1");
  EXPECT_TRUE(Take(first));
}

TEST_F(TaskCreate, RefusesAMemberWhoseCreateIsUnderWay) {
  Announce("pod");
  ASSERT_TRUE(Create("pod"));
  MakeBundle("b");
  keeper_.silent = {link::Type::kAddMember};
  Send("Create", CreateRequest("b"), "pod");
  EXPECT_EQ(CodeOf(Create("b", "pod")), Code::kAlreadyExists);
  pb::StateRequest state;
  state.set_id("b");
  EXPECT_EQ(CodeOf(Ask<pb::StateResponse>("State", state, "pod")), Code::kNotFound);
  // Its answer never comes: this engine is given up.
  keeper_.silent.clear();
  RestartEngine();
}

TEST_F(TaskCreate, AnswersAReplayOfWhatIsDone) {
  Announce("c1");
  ASSERT_TRUE(Create("c1"));
  const auto again = Ask<pb::CreateTaskResponse>("Create", CreateRequest("c1"), "c1", true);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->pid(), 4001U);
  EXPECT_EQ(backend_.Count("create c1"), 1U);
}

TEST_F(TaskCreate, RefusesIdsThatAreNone) {
  Announce("c1");
  for (const std::string& id : {std::string("../x"), std::string("a/b"), std::string(),
                                std::string(10'000, 'x'), std::string(".")}) {
    pb::CreateTaskRequest request = CreateRequest("c1");
    request.set_id(id);
    EXPECT_EQ(CodeOf(Ask<pb::CreateTaskResponse>("Create", request, "c1")), Code::kInvalidArgument);
  }
}

TEST_F(TaskCreate, LeavesNothingWhenTheBackendFails) {
  Announce("c1");
  backend_.FailNext("create c1", Error{Code::kInternal, 0, "no such program", {}});
  const auto created = Create("c1");
  EXPECT_EQ(CodeOf(created), Code::kInternal);
  EXPECT_THAT(MessageOf(created), HasSubstr("no such program"));
  EXPECT_EQ(backend_.Count("shutdown sandbox c1"), 1U);
  ExpectNothingLeft("c1");
}

TEST_F(TaskCreate, LeavesNothingWhenTheBackendThrows) {
  Announce("c1");
  backend_.ThrowNext("create c1");
  const auto created = Create("c1");
  EXPECT_EQ(CodeOf(created), Code::kInternal);
  EXPECT_THAT(MessageOf(created), HasSubstr("out of luck"));
  ExpectNothingLeft("c1");
}

TEST_F(TaskCreate, EndsASandboxThatDidNotStart) {
  Announce("c1");
  backend_.SaveState("state", "");
  backend_.FailNext("start sandbox c1", Error{Code::kUnavailable, 0, "no kvm", {}});
  EXPECT_EQ(CodeOf(Create("c1")), Code::kUnavailable);
  EXPECT_EQ(backend_.Count("shutdown sandbox c1"), 1U);
  ExpectNothingLeft("c1");
  ASSERT_TRUE(Create("c1"));
}

TEST_F(TaskCreate, MayBeTriedAgainAfterAFailure) {
  Announce("c1");
  backend_.FailNext("create c1", Error{Code::kInternal, 0, "bad luck", {}});
  EXPECT_FALSE(Create("c1"));
  EXPECT_TRUE(Create("c1"));
}

TEST_F(TaskCreate, UndoesInReverseWhenAMountFails) {
  const std::string bundle = Announce("c1");
  pb::CreateTaskRequest request = CreateRequest("c1");
  auto* mount = request.add_rootfs();
  mount->set_type("nosuchfs");
  mount->set_source("none");
  const auto created = Ask<pb::CreateTaskResponse>("Create", request, "c1");
  EXPECT_FALSE(created);
  EXPECT_THAT(backend_.Calls(), IsEmpty());
  ExpectNothingLeft("c1");
}

TEST_F(TaskCreate, RefusesBundlesThatAreNone) {
  Announce("c1");
  pb::CreateTaskRequest request = CreateRequest("c1");
  request.set_bundle(dir_.path() + "/absent");
  EXPECT_EQ(CodeOf(Ask<pb::CreateTaskResponse>("Create", request, "c1")), Code::kNotFound);
  request.set_bundle("relative");
  EXPECT_EQ(CodeOf(Ask<pb::CreateTaskResponse>("Create", request, "c1")), Code::kInvalidArgument);
  request.set_bundle(dir_.path() + "/c1/config.json");
  EXPECT_EQ(CodeOf(Ask<pb::CreateTaskResponse>("Create", request, "c1")), Code::kInvalidArgument);
}

TEST_F(TaskCreate, RefusesAConfigJsonThatIsNone) {
  const std::string bundle = Announce("c1");
  for (const std::string text : {"", "{", "[]", R"({"process":{"args":"x"}})"}) {
    ASSERT_TRUE(ReplaceFile(bundle + "/config.json", text, 0644));
    EXPECT_EQ(CodeOf(Create("c1")), Code::kInvalidArgument) << text;
  }
  ExpectNothingLeft("c1");
}

TEST_F(TaskCreate, RefusesAHandlerThatIsNotConfigured) {
  const std::string bundle = Announce("c1");
  pb::CreateTaskRequest request = CreateRequest("c1");
  request.mutable_options()->set_type_url("runtimeoptions.v1.Options");
  // Field 3, the table.
  const std::string table = "Handler = 'nope'\n";
  request.mutable_options()->set_value(std::string("\x1a") + static_cast<char>(table.size()) +
                                       table);
  const auto created = Ask<pb::CreateTaskResponse>("Create", request, "c1");
  EXPECT_EQ(CodeOf(created), Code::kInvalidArgument);
  EXPECT_THAT(MessageOf(created), HasSubstr("nope"));
  ExpectNothingLeft("c1");
}

TEST_F(TaskCreate, MakesNothingNewWithAConfigurationThatIsWrong) {
  around_.config_error = "gantry.yaml:3:1: unknown key";
  RestartEngine();
  Announce("c1");
  const auto created = Create("c1");
  EXPECT_EQ(CodeOf(created), Code::kFailedPrecondition);
  EXPECT_THAT(MessageOf(created), HasSubstr("gantry.yaml:3:1"));
  ExpectNothingLeft("c1");
}

TEST_F(TaskCreate, SaysWhyItsBackendCannotBeUsed) {
  around_.backend_error = "plugin is world-writable";
  RestartEngine();
  Announce("c1");
  const auto created = Create("c1");
  EXPECT_EQ(CodeOf(created), Code::kFailedPrecondition);
  EXPECT_THAT(MessageOf(created), HasSubstr("world-writable"));
  ExpectNothingLeft("c1");
}

TEST_F(TaskCreate, PublishesAnEarlyExitAfterItself) {
  Announce("c1");
  backend_.EndDuring("create c1", "c1", 3);
  ASSERT_TRUE(Create("c1"));
  const auto waited = TakeAs<pb::WaitResponse>(SendWait("c1"));
  ASSERT_TRUE(waited);
  EXPECT_EQ(waited->exit_status(), 3U);
  EXPECT_THAT(Events(), ElementsAre("create c1", "exit c1 3"));
}

TEST_F(TaskCreate, EndsAWaitForWhatWasNeverMade) {
  Announce("c1");
  backend_.Hold("create c1");
  backend_.FailNext("create c1", Error{Code::kInternal, 0, "bad luck", {}});
  const uint32_t create = Send("Create", CreateRequest("c1"), "c1");
  ASSERT_TRUE(Until([&] { return backend_.Held("create c1"); }));
  const uint32_t wait = SendWait("c1");
  const uint32_t start = SendStart("c1");
  const uint32_t remove = SendDelete("c1");
  backend_.Release("create c1");
  EXPECT_FALSE(Take(create));
  EXPECT_EQ(CodeOf(Take(wait)), Code::kNotFound);
  EXPECT_EQ(CodeOf(Take(start)), Code::kNotFound);
  EXPECT_EQ(CodeOf(Take(remove)), Code::kNotFound);
}

}  // namespace
}  // namespace gantry::task
