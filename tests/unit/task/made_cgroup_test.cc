// SPDX-License-Identifier: Apache-2.0
//
// Cgroups that the core makes for a container: on record before they are made, and
// removed with it, whoever does that.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "core/link/messages.h"
#include "core/link/record_peek.h"
#include "tests/unit/task/made_cgroups.h"

namespace gantry::task {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(MadeCgroups, AreThoseOfTheSpec) {
  BeginWithFiles();
  AnnounceIn("c1", "/pods/c1");
  const auto created = Create("c1");
  ASSERT_TRUE(created) << created.error().message;
  EXPECT_THAT(made_, ElementsAre(Dir()));
  EXPECT_TRUE(IsThere());
}

TEST_F(MadeCgroups, AreNoneWhereTheSpecNamesNone) {
  BeginWithFiles();
  made_ = {"something"};
  Announce("c1");
  ASSERT_TRUE(Create("c1"));
  EXPECT_THAT(made_, IsEmpty());
  EXPECT_THAT(RecordOf("c1").cgroups, IsEmpty());
}

TEST_F(MadeCgroups, AreKnownToWhoeverEndsTheContainer) {
  BeginWithFiles();
  AnnounceIn("c1", "/pods/c1");
  ASSERT_TRUE(Create("c1"));
  EXPECT_THAT(ProtectedDirs(), ElementsAre(Dir()));
  EXPECT_THAT(RecordOf("c1").cgroups, ElementsAre(Dir()));
  const auto bytes = ReadFile(store::PathOf(dir_.path() + "/c1"), 1 << 20);
  ASSERT_TRUE(bytes);
  EXPECT_THAT(link::PeekRecord(*bytes)->cgroup_dirs, ElementsAre(Dir()));
}

TEST_F(MadeCgroups, GoWithTheContainer) {
  BeginWithFiles();
  AnnounceIn("c1", "/pods/c1");
  ASSERT_TRUE(Create("c1"));
  ASSERT_TRUE(Start("c1"));
  End("c1", 3);
  EXPECT_TRUE(IsThere());
  EXPECT_EQ(Delete("c1")->exit_status(), 3U);
  EXPECT_FALSE(IsThere());
  EXPECT_TRUE(Exists(files_.path() + "/pods"));
}

TEST_F(MadeCgroups, GoAfterTheBackendsDeleteOnly) {
  BeginWithFiles();
  AnnounceIn("c1", "/pods/c1");
  ASSERT_TRUE(Create("c1"));
  backend_.FailNext("delete c1", Error{Code::kUnavailable, 0, "not now", {}});
  EXPECT_EQ(CodeOf(Delete("c1")), Code::kUnavailable);
  EXPECT_TRUE(IsThere());
  EXPECT_TRUE(Delete("c1"));
  EXPECT_FALSE(IsThere());
}

TEST_F(MadeCgroups, ThatAreBusyAreRemovedByTheNextDelete) {
  BeginWithFiles();
  AnnounceIn("c1", "/pods/c1");
  ASSERT_TRUE(Create("c1"));
  files_.Put("pods/c1/in-the-way", "");
  EXPECT_FALSE(Delete("c1"));
  std::filesystem::remove(Dir() + "/in-the-way");
  EXPECT_TRUE(Delete("c1"));
  EXPECT_FALSE(IsThere());
}

TEST_F(MadeCgroups, GoWhereAnotherEngineDeletes) {
  BeginWithFiles();
  AnnounceIn("c1", "/pods/c1");
  ASSERT_TRUE(Create("c1"));
  ASSERT_TRUE(Start("c1"));
  RestartEngine();
  EXPECT_EQ(State("c1")->status(), pb::RUNNING);
  End("c1", 3);
  EXPECT_TRUE(Delete("c1"));
  EXPECT_FALSE(IsThere());
}

TEST_F(MadeCgroups, GoWhereTheBackendDoesNotKnowTheContainerAnyMore) {
  BeginWithFiles();
  AnnounceIn("c1", "/pods/c1");
  ASSERT_TRUE(Create("c1"));
  ASSERT_TRUE(Start("c1"));
  backend_.FailNext("recover c1", Error{Code::kInternal, 0, "no idea", {}});
  RestartEngine();
  EXPECT_TRUE(Delete("c1"));
  EXPECT_FALSE(IsThere());
}

TEST_F(MadeCgroups, GoWithACreateThatFails) {
  BeginWithFiles();
  AnnounceIn("c1", "/pods/c1");
  backend_.FailNext("create c1", Error{Code::kInternal, 0, "no luck", {}});
  EXPECT_FALSE(Create("c1"));
  EXPECT_FALSE(IsThere());
  EXPECT_THAT(ProtectedDirs(), IsEmpty());
}

TEST_F(MadeCgroups, GoWithACreateThatTheEnginesEndInterrupts) {
  BeginWithFiles();
  AnnounceIn("c1", "/pods/c1");
  backend_.Hold("create c1");
  Send("Create", CreateRequest("c1"), "c1");
  ASSERT_TRUE(Until([&] { return backend_.Held("create c1"); }));
  EXPECT_TRUE(IsThere());
  EXPECT_THAT(RecordOf("c1").cgroups, ElementsAre(Dir()));
  backend_.FailNext("recover c1", Error{Code::kAborted, 0, "it was never finished", {}});
  RestartEngine();
  EXPECT_EQ(CodeOf(State("c1")), Code::kNotFound);
  EXPECT_FALSE(IsThere());
  backend_.Release("create c1");
  EXPECT_TRUE(Ask<pb::CreateTaskResponse>("Create", CreateRequest("c1"), "c1", true));
  EXPECT_TRUE(IsThere());
}

TEST_F(MadeCgroups, GoWithTheInstance) {
  BeginWithFiles();
  AnnounceIn("c1", "/pods/c1");
  ASSERT_TRUE(Create("c1"));
  keeper_.AskToDelete(1, 1);
  ASSERT_TRUE(Until([&] { return !keeper_.deleted.empty(); }));
  EXPECT_FALSE(IsThere());
}

TEST_F(MadeCgroups, GoWithThePodAndAreAnothersThen) {
  BeginWithFiles();
  RunPod();
  AnnounceIn("a", "/pods/c1", kPod);
  ASSERT_TRUE(Create("a", kPod));
  const uint32_t stopping = SendSandbox("StopSandbox", Of<sandbox_pb::StopSandboxRequest>(), kPod);
  ASSERT_TRUE(TakeAs<sandbox_pb::StopSandboxResponse>(stopping));
  EXPECT_FALSE(IsThere());
  EXPECT_THAT(RecordOf("a").cgroups, IsEmpty());
  AnnounceIn("c1", "/pods/c1");
  ASSERT_TRUE(Create("c1"));
  RestartEngine();
  EXPECT_TRUE(Delete("a"));
  EXPECT_TRUE(IsThere());
}

TEST_F(MadeCgroups, AreNotMadeWhereTheyCannotBeOnRecord) {
  BeginWithFiles();
  AnnounceIn("c1", "/pods/c1");
  const std::string record = store::PathOf(dir_.path() + "/c1");
  backend_.UseContext([&](ContainerContext& context, bool) {
    // A file does not take the place of a directory.
    std::filesystem::remove(record);
    std::filesystem::create_directories(record + "/in-the-way");
    Status made = MakeIn(context);
    EXPECT_FALSE(IsThere());
    std::filesystem::remove_all(record);
    return made;
  });
  EXPECT_FALSE(Create("c1"));
  EXPECT_THAT(ProtectedDirs(), IsEmpty());
}

TEST_F(MadeCgroups, WhoseLimitCannotBeAreNotMade) {
  BeginWithFiles();
  Announce("c1");
  Specify("c1", R"("cgroupsPath":"/pods/c1","resources":{"pids":{"limit":7}})");
  Status made;
  backend_.UseContext([&](ContainerContext& context, bool) {
    made = MakeIn(context);
    return Status();
  });
  ASSERT_TRUE(Create("c1")) << "the backend does without";
  EXPECT_THAT(MessageOf(made), HasSubstr("pids.max"));
  EXPECT_FALSE(IsThere());
  EXPECT_THAT(ProtectedDirs(), IsEmpty());
  EXPECT_THAT(RecordOf("c1").cgroups, IsEmpty());
  EXPECT_TRUE(Delete("c1"));
}

TEST_F(MadeCgroups, WhoseRulesForDevicesAreNoneAreNotMade) {
  BeginWithFiles();
  Announce("c1");
  Specify("c1", R"("cgroupsPath":"/pods/c1","resources":{"devices":[{"type":"x"}]})");
  const auto refused = Create("c1");
  EXPECT_EQ(CodeOf(refused), Code::kInvalidArgument);
  EXPECT_THAT(MessageOf(refused), HasSubstr("/linux/resources/devices/0/type"));
  EXPECT_FALSE(IsThere());
  EXPECT_THAT(ProtectedDirs(), IsEmpty());
}

TEST_F(MadeCgroups, OfAnotherContainerAreRefused) {
  BeginWithFiles();
  AnnounceIn("c1", "/pods/c1");
  ASSERT_TRUE(Create("c1"));
  AnnounceIn("c2", "pods//c1");
  const auto refused = Create("c2");
  EXPECT_EQ(CodeOf(refused), Code::kFailedPrecondition);
  EXPECT_THAT(MessageOf(refused), HasSubstr("that of container 'c1'"));
  EXPECT_TRUE(IsThere());
}

TEST_F(MadeCgroups, WithForeignProcessesStay) {
  BeginWithFiles();
  AnnounceIn("c1", "/pods/c1");
  files_.Put("pods/c1/cgroup.procs", "1\n");
  const auto refused = Create("c1");
  EXPECT_EQ(CodeOf(refused), Code::kFailedPrecondition);
  EXPECT_THAT(MessageOf(refused), HasSubstr("not the container's"));
  EXPECT_TRUE(IsThere());
  EXPECT_THAT(ProtectedDirs(), IsEmpty());
}

TEST_F(MadeCgroups, OfABadPathAreRefused) {
  BeginWithFiles();
  AnnounceIn("c1", "/pods/../c1");
  EXPECT_EQ(CodeOf(Create("c1")), Code::kInvalidArgument);
  AnnounceIn("c2", "no-slice:a:b");
  const auto refused = Create("c2");
  EXPECT_EQ(CodeOf(refused), Code::kInvalidArgument);
  EXPECT_THAT(MessageOf(refused), HasSubstr("/linux/cgroupsPath"));
}

TEST_F(MadeCgroups, AreTheSameWhenAskedForAgain) {
  BeginWithFiles();
  AnnounceIn("c1", "/pods/c1");
  backend_.UseContext([this](ContainerContext& context, bool) -> Status {
    GANTRY_CHECK_OK(MakeIn(context));
    files_.Put("pods/c1/cgroup.procs", "1\n");  // The container's own by now.
    made_.clear();
    return MakeIn(context);
  });
  ASSERT_TRUE(Create("c1"));
  EXPECT_THAT(made_, ElementsAre(Dir()));
  made_.clear();
  RestartEngine();
  EXPECT_EQ(State("c1")->status(), pb::CREATED);
  EXPECT_THAT(made_, ElementsAre(Dir()));
}

TEST_F(MadeCgroups, ThatWereNotFinishedAreMadeAnew) {
  BeginWithFiles();
  AnnounceIn("c1", "/pods/c1");
  ASSERT_TRUE(Create("c1"));
  store::Record record = RecordOf("c1");
  ASSERT_EQ(record.blobs.at("made-cgroups"), "made");
  record.blobs["made-cgroups"] = "making";
  ASSERT_TRUE(store::Write(record));
  std::filesystem::remove(Dir());
  backend_.UseContext([this](ContainerContext& context, bool) { return MakeIn(context); });
  RestartEngine();
  EXPECT_EQ(State("c1")->status(), pb::CREATED);
  EXPECT_TRUE(IsThere());
  EXPECT_TRUE(Delete("c1"));
  EXPECT_FALSE(IsThere());
}

}  // namespace
}  // namespace gantry::task
