// SPDX-License-Identifier: Apache-2.0
//
// The Sandbox service: the life of a pod and of the containers in it.
#include "tests/unit/pod/pod_test.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/pod/pod_files.h>

#include "core/link/messages.h"
#include "core/link/record_peek.h"
#include "core/log/log.h"

namespace gantry::task {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAreArray;

TEST_F(PodTest, LivesFromCreateToShutdown) {
  AnnouncePod();
  ASSERT_TRUE(CreateSandbox());
  EXPECT_EQ(SandboxStatus()->state(), "SANDBOX_NOTREADY");
  const auto started = StartSandbox();
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_GT(started->pid(), 0U);
  EXPECT_GT(started->created_at().seconds(), 0);
  const auto ready = SandboxStatus();
  EXPECT_EQ(ready->state(), "SANDBOX_READY");
  EXPECT_EQ(ready->pid(), started->pid());
  const uint32_t wait = SendWaitSandbox();
  Settle();
  EXPECT_FALSE(Answered(wait)) << "it runs";
  ASSERT_TRUE(StopSandbox());
  const auto ended = TakeWait(wait);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->exit_status(), 0U);
  EXPECT_GT(ended->exited_at().seconds(), 0);
  EXPECT_EQ(SandboxStatus()->state(), "SANDBOX_NOTREADY");
  EXPECT_EQ(SandboxStatus()->pid(), started->pid()) << "it stays the same";
  ASSERT_TRUE(ShutdownSandbox());
  EXPECT_EQ(CodeOf(SandboxStatus()), Code::kNotFound);
  ASSERT_EQ(keeper_.forgotten.size(), 1U);
  EXPECT_EQ(keeper_.forgotten[0].instance, instance_);
  EXPECT_EQ(RecordOf(kPod).bundle, "") << "its record is gone";
  EXPECT_THAT(backend_.Calls(), ElementsAre("create sandbox p1", "start sandbox p1",
                                            "stop sandbox p1", "shutdown sandbox p1"));
}

TEST_F(PodTest, ItsContainersUseItAndLeaveIt) {
  RunPod();
  Run("a", kPod);
  Run("b", kPod);
  End("a", 3);
  EXPECT_EQ(Delete("a")->exit_status(), 3U);
  End("b", 0);
  ASSERT_TRUE(Delete("b"));
  Settle();
  EXPECT_EQ(SandboxStatus()->state(), "SANDBOX_READY") << "it outlives them";
  EXPECT_EQ(backend_.Count("create sandbox p1"), 1U);
  EXPECT_EQ(backend_.Count("shutdown sandbox p1"), 0U);
}

TEST_F(PodTest, AContainerNeedsNoStartOfItsOwn) {
  RunPod();
  MakeBundle("a");
  ASSERT_TRUE(Create("a", kPod));
  EXPECT_EQ(RecordOf("a").sandbox_id, kPod);
  EXPECT_EQ(RecordOf("a").sandbox_prefix, RecordOf(kPod).sandbox_prefix);
}

TEST_F(PodTest, StopEndsItsContainersFirst) {
  RunPod();
  Run("a", kPod);
  const uint32_t wait = SendWait("a");
  const uint32_t stopping = SendSandbox("StopSandbox", Of<sandbox_pb::StopSandboxRequest>(), kPod);
  ASSERT_TRUE(Until([&] { return backend_.Count("killall a 9") > 0; }));
  ASSERT_TRUE(backend_.End("a", 137));
  EXPECT_TRUE(TakeAs<sandbox_pb::StopSandboxResponse>(stopping));
  EXPECT_EQ(TakeAs<pb::WaitResponse>(wait)->exit_status(), 137U);
  EXPECT_THAT(Events(), Contains("exit a 137"));
  EXPECT_EQ(Delete("a")->exit_status(), 137U) << "it is there until it is deleted";
}

TEST_F(PodTest, ItsEndByItselfEndsItsContainers) {
  RunPod();
  Run("a", kPod);
  const uint32_t wait = SendWaitSandbox();
  ASSERT_TRUE(backend_.End("sandbox p1", 139));
  ASSERT_TRUE(Until([&] { return backend_.Count("killall a 9") > 0; }));
  ASSERT_TRUE(backend_.End("a", 137));
  EXPECT_EQ(TakeWait(wait)->exit_status(), 139U);
  EXPECT_EQ(State("a")->status(), pb::STOPPED);
  EXPECT_EQ(SandboxStatus()->state(), "SANDBOX_NOTREADY");
  EXPECT_TRUE(StopSandbox()) << "as often as one likes";
}

TEST_F(PodTest, ItsEndIsNoErrorWhereContainerdHasDeletedTheBundle) {
  RunPod();
  std::filesystem::remove_all(bundle());
  std::vector<std::string> said;
  log::SetSinkForTest([&](std::string_view line) { said.emplace_back(line); });
  const uint32_t wait = SendWaitSandbox();
  ASSERT_TRUE(backend_.End("sandbox p1", 139));
  EXPECT_EQ(TakeWait(wait)->exit_status(), 139U);
  log::SetSinkForTest({});
  EXPECT_THAT(said, Contains(AllOf(HasSubstr("level=info"), HasSubstr("record the exit"))));
  EXPECT_THAT(said, Each(Not(HasSubstr("level=error"))));
}

TEST_F(PodTest, AnEndDuringTheStartIsKnownAfterIt) {
  AnnouncePod();
  ASSERT_TRUE(CreateSandbox());
  backend_.EndDuring("start sandbox p1", "sandbox p1", 1);
  ASSERT_TRUE(StartSandbox());
  EXPECT_EQ(TakeWait(SendWaitSandbox())->exit_status(), 1U);
  EXPECT_EQ(SandboxStatus()->state(), "SANDBOX_NOTREADY");
}

TEST_F(PodTest, ACreateThatFailsLeavesNothing) {
  AnnouncePod();
  backend_.FailNext("create sandbox p1", Error{Code::kInvalidArgument, 0, "no such thing", ""});
  const auto failed = CreateSandbox();
  EXPECT_EQ(CodeOf(failed), Code::kInvalidArgument);
  EXPECT_THAT(MessageOf(failed), HasSubstr("no such thing"));
  EXPECT_EQ(CodeOf(SandboxStatus()), Code::kNotFound);
  EXPECT_EQ(RecordOf(kPod).bundle, "");
}

TEST_F(PodTest, AStartThatFailsCanBeShutDown) {
  AnnouncePod();
  ASSERT_TRUE(CreateSandbox());
  backend_.FailNext("start sandbox p1", Error{Code::kUnavailable, 0, "no room", ""});
  EXPECT_EQ(CodeOf(StartSandbox()), Code::kUnavailable);
  EXPECT_EQ(SandboxStatus()->state(), "SANDBOX_NOTREADY");
  EXPECT_TRUE(ShutdownSandbox());
  EXPECT_EQ(CodeOf(SandboxStatus()), Code::kNotFound);
}

TEST_F(PodTest, AStartThatCannotBeRecordedIsUndone) {
  AnnouncePod();
  ASSERT_TRUE(CreateSandbox());
  // Its end, too, comes before the start is known to have failed.
  backend_.EndDuring("start sandbox p1", "sandbox p1", 1);
  backend_.Hold("start sandbox p1");
  const uint32_t start = SendSandbox("StartSandbox", Of<sandbox_pb::StartSandboxRequest>(), kPod);
  ASSERT_TRUE(Until([&] { return backend_.Held("start sandbox p1"); }));
  BlockRecord();
  backend_.Release("start sandbox p1");
  const auto failed = TakeAs<sandbox_pb::StartSandboxResponse>(start);
  ASSERT_FALSE(failed);
  EXPECT_THAT(MessageOf(failed), HasSubstr("start sandbox 'p1'"));
  EXPECT_EQ(backend_.Count("stop sandbox p1"), 1U);
  UnblockRecord();
  const auto status = SandboxStatus();
  EXPECT_EQ(status->state(), "SANDBOX_NOTREADY");
  EXPECT_EQ(status->pid(), 0U);
  EXPECT_FALSE(keeper_.last_resorts[instance_].init) << "nothing of it runs";
  const uint32_t wait = SendWaitSandbox();
  EXPECT_TRUE(StopSandbox());
  EXPECT_TRUE(TakeWait(wait));
  EXPECT_TRUE(ShutdownSandbox());
}

TEST_F(PodTest, WhereItsFilesAreMountedIsKnownBeforeTheyAre) {
  AnnouncePod();
  const std::string create = "create sandbox p1";
  const std::string start = "start sandbox p1";
  backend_.Hold(create);
  backend_.Hold(start);
  const auto expect_known = [this] {
    const auto files = UnorderedElementsAreArray(PodFileMounts(bundle()));
    EXPECT_THAT(keeper_.last_resorts[instance_].memory_mounts, files)
        << "of a keeper without its engine";
    const auto record = ReadFile(store::PathOf(bundle()), link::kMaxRecordBytes);
    ASSERT_TRUE(record);
    EXPECT_THAT(link::PeekRecord(*record)->memory_mounts, files) << "of a shim without either";
  };
  const uint32_t creating = SendSandbox("CreateSandbox", CreateSandboxRequest(), kPod);
  ASSERT_TRUE(
      Until([&] { return backend_.Held(create) && keeper_.last_resorts.contains(instance_); }));
  expect_known();
  backend_.Release(create);
  ASSERT_TRUE(TakeAs<sandbox_pb::CreateSandboxResponse>(creating));
  const uint32_t starting =
      SendSandbox("StartSandbox", Of<sandbox_pb::StartSandboxRequest>(), kPod);
  ASSERT_TRUE(Until([&] { return backend_.Held(start); }));
  expect_known();
  backend_.Release(start);
  ASSERT_TRUE(TakeAs<sandbox_pb::StartSandboxResponse>(starting));
  expect_known();
}

TEST_F(PodTest, WrongCallsAreRefused) {
  AnnouncePod();
  EXPECT_EQ(CodeOf(StartSandbox()), Code::kNotFound);
  auto other = CreateSandboxRequest();
  other.set_sandbox_id("p2");
  EXPECT_EQ(CodeOf(AskSandbox<sandbox_pb::CreateSandboxResponse>("CreateSandbox", other)),
            Code::kInvalidArgument)
      << "this is the socket of p1";
  auto elsewhere = CreateSandboxRequest();
  elsewhere.set_bundle_path("relative");
  EXPECT_EQ(CodeOf(AskSandbox<sandbox_pb::CreateSandboxResponse>("CreateSandbox", elsewhere)),
            Code::kInvalidArgument);
  auto garbage = CreateSandboxRequest();
  garbage.mutable_options()->set_type_url("runtime.v1.PodSandboxConfig");
  garbage.mutable_options()->set_value("\xff\xff");
  EXPECT_EQ(CodeOf(AskSandbox<sandbox_pb::CreateSandboxResponse>("CreateSandbox", garbage)),
            Code::kInvalidArgument);
  ASSERT_TRUE(CreateSandbox());
  EXPECT_EQ(CodeOf(CreateSandbox()), Code::kAlreadyExists);
  ASSERT_TRUE(StartSandbox());
  EXPECT_EQ(CodeOf(StartSandbox()), Code::kFailedPrecondition);
  EXPECT_EQ(CodeOf(AskSandbox<sandbox_pb::PingResponse>("PingSandbox",
                                                        Of<sandbox_pb::PingRequest>("p2"))),
            Code::kNotFound);
  EXPECT_TRUE(AskSandbox<sandbox_pb::PingResponse>("PingSandbox", Of<sandbox_pb::PingRequest>()));
}

TEST_F(PodTest, NeedsAConfigurationThatHolds) {
  around_.config_error = "gantry.yaml:3: no";
  RestartEngine();
  AnnouncePod();
  const auto refused = CreateSandbox();
  EXPECT_EQ(CodeOf(refused), Code::kFailedPrecondition);
  EXPECT_THAT(MessageOf(refused), HasSubstr("gantry.yaml:3"));
}

TEST_F(PodTest, TellsMoreWhenAsked) {
  RunPod();
  const auto status = SandboxStatus(true);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->info().at("colour"), "blue");
  EXPECT_EQ(status->info().at("backend"), "runc");
  EXPECT_EQ(SandboxStatus()->info().size(), 0U);
  const auto platform =
      AskSandbox<sandbox_pb::PlatformResponse>("Platform", Of<sandbox_pb::PlatformRequest>());
  EXPECT_EQ(platform->platform().os(), "linux");
  EXPECT_EQ(platform->platform().architecture(), "amd64");
}

TEST_F(PodTest, MetricsAreTheBackends) {
  RunPod();
  const auto metrics = AskSandbox<sandbox_pb::SandboxMetricsResponse>(
      "SandboxMetrics", Of<sandbox_pb::SandboxMetricsRequest>());
  ASSERT_TRUE(metrics);
  EXPECT_EQ(metrics->metrics().id(), kPod);
  EXPECT_EQ(metrics->metrics().data().type_url(), "io.containerd.cgroups.v2.Metrics");
  EXPECT_NE(metrics->metrics().data().value(), "");
  backend_.LeaveOut("metrics");
  EXPECT_EQ(CodeOf(AskSandbox<sandbox_pb::SandboxMetricsResponse>(
                "SandboxMetrics", Of<sandbox_pb::SandboxMetricsRequest>())),
            Code::kUnimplemented)
      << "nobody said where its cgroup is";
}

TEST_F(PodTest, UpdateTakesBothForms) {
  RunPod();
  auto request = Of<sandbox_pb::UpdateSandboxRequest>();
  request.mutable_resources()->set_type_url("types.containerd.io/LinuxResources");
  request.mutable_resources()->set_value(R"({"memory":{"limit":4096}})");
  ASSERT_TRUE(AskSandbox<sandbox_pb::UpdateSandboxResponse>("UpdateSandbox", request));
  request.mutable_resources()->set_type_url("runtime.v1.LinuxContainerResources");
  request.mutable_resources()->set_value(std::string("\x20\x80\x40", 3));
  ASSERT_TRUE(AskSandbox<sandbox_pb::UpdateSandboxResponse>("UpdateSandbox", request));
  EXPECT_THAT(backend_.Calls(), Contains("update sandbox p1 4096"));
  EXPECT_THAT(backend_.Calls(), Contains("update sandbox p1 8192"));
}

// As containerd 2.4 says it.
TEST_F(PodTest, UpdateTakesTheSandboxAsItIsNow) {
  RunPod();
  auto request = Of<sandbox_pb::UpdateSandboxRequest>();
  request.add_fields("extensions");
  auto& extensions = *request.mutable_sandbox()->mutable_extensions();
  extensions["tasks"].set_value("{}");
  ASSERT_TRUE(AskSandbox<sandbox_pb::UpdateSandboxResponse>("UpdateSandbox", request));
  EXPECT_EQ(backend_.Count("update sandbox p1"), 0U) << "nothing of it is changed here";
  extensions["updated-resources"].set_value(
      R"({"Overhead":{},"Resources":{"memory_limit_in_bytes":4096}})");
  ASSERT_TRUE(AskSandbox<sandbox_pb::UpdateSandboxResponse>("UpdateSandbox", request));
  EXPECT_THAT(backend_.Calls(), Contains("update sandbox p1 4096"));
  extensions["updated-resources"].set_value("[]");
  EXPECT_EQ(CodeOf(AskSandbox<sandbox_pb::UpdateSandboxResponse>("UpdateSandbox", request)),
            Code::kInvalidArgument);
}

TEST_F(PodTest, ShutdownEndsWhatStillRuns) {
  RunPod();
  Run("a", kPod);
  const uint32_t wait = SendWait("a");
  const uint32_t ending =
      SendSandbox("ShutdownSandbox", Of<sandbox_pb::ShutdownSandboxRequest>(), kPod);
  ASSERT_TRUE(Until([&] { return backend_.Count("killall a 9") > 0; }));
  ASSERT_TRUE(backend_.End("a", 137));
  EXPECT_TRUE(TakeAs<sandbox_pb::ShutdownSandboxResponse>(ending));
  EXPECT_EQ(TakeAs<pb::WaitResponse>(wait)->exit_status(), 137U);
  EXPECT_EQ(backend_.Count("shutdown sandbox p1"), 1U);
}

TEST_F(PodTest, ContainerdMayLoseIt) {
  RunPod();
  const uint32_t wait = SendWaitSandbox();
  keeper_.AskToDelete(77, instance_);
  ASSERT_TRUE(Until([&] { return !keeper_.deleted.empty(); }));
  EXPECT_EQ(keeper_.deleted[0].tag, 77U);
  EXPECT_EQ(keeper_.deleted[0].code, 0);
  EXPECT_TRUE(TakeWait(wait));
  EXPECT_EQ(CodeOf(SandboxStatus()), Code::kNotFound);
  EXPECT_EQ(backend_.Count("shutdown sandbox p1"), 1U);
}

TEST_F(PodTest, TheKeeperMayHaveEndedIt) {
  RunPod();
  keeper_.RemoveInstance(instance_);
  ASSERT_TRUE(Until([&] { return backend_.Count("shutdown sandbox p1") == 1; }));
  Settle();
  EXPECT_THAT(Events(), Each(Not(HasSubstr("p1")))) << "a pod is no task";
}

}  // namespace
}  // namespace gantry::task
