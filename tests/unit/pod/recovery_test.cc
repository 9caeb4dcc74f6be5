// SPDX-License-Identifier: Apache-2.0
//
// Pods over a restart of the engine, at each step of their lives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/process/process_id.h>

#include "tests/unit/pod/pod_test.h"
#include "tests/unit/task/child.h"

namespace gantry::task {
namespace {

using testing::Contains;

class PodRecovery : public PodTest {};

TEST_F(PodRecovery, GoesOnWithItsContainers) {
  backend_.SaveState("state", "");
  RunPod();
  Run("a", kPod);
  const uint32_t pid = SandboxStatus()->pid();
  RestartEngine();
  EXPECT_EQ(SandboxStatus()->state(), "SANDBOX_READY");
  EXPECT_EQ(SandboxStatus()->pid(), pid);
  EXPECT_EQ(State("a")->status(), pb::RUNNING);
  EXPECT_THAT(backend_.Calls(), Contains("recover sandbox p1 state"));
  EXPECT_EQ(backend_.Count("recover sandbox p1 state"), 1U);
  End("a", 5);
  EXPECT_EQ(Delete("a")->exit_status(), 5U);
  EXPECT_EQ(SandboxStatus()->state(), "SANDBOX_READY");
  EXPECT_TRUE(StopSandbox());
  EXPECT_TRUE(ShutdownSandbox());
}

TEST_F(PodRecovery, AWaitThatComesAgainGoesOnWaiting) {
  RunPod();
  RestartEngine();
  const uint32_t wait = SendWaitSandbox(true);
  Settle();
  EXPECT_FALSE(Answered(wait));
  ASSERT_TRUE(backend_.End("sandbox p1", 9));
  EXPECT_EQ(TakeWait(wait)->exit_status(), 9U);
}

TEST_F(PodRecovery, AnEndMeanwhileIsTold) {
  RunPod();
  backend_.SetEnded("sandbox p1", 7);
  RestartEngine();
  EXPECT_EQ(TakeWait(SendWaitSandbox(true))->exit_status(), 7U);
  EXPECT_EQ(SandboxStatus()->state(), "SANDBOX_NOTREADY");
}

TEST_F(PodRecovery, AnEndBeforeStaysAsItWas) {
  RunPod();
  const uint32_t wait = SendWaitSandbox();
  ASSERT_TRUE(backend_.End("sandbox p1", 4));
  const auto before = TakeWait(wait);
  RestartEngine();
  const auto after = TakeWait(SendWaitSandbox(true));
  EXPECT_EQ(after->exit_status(), 4U);
  EXPECT_EQ(after->exited_at().nanos(), before->exited_at().nanos());
}

TEST_F(PodRecovery, ACreateThatWasUnderWayIsUndoneAndDoneAgain) {
  AnnouncePod();
  backend_.Hold("create sandbox p1");
  SendSandbox("CreateSandbox", CreateSandboxRequest(), kPod);
  ASSERT_TRUE(Until([&] { return backend_.Held("create sandbox p1"); }));
  RestartEngine();
  backend_.Release("create sandbox p1");
  const auto again = CreateSandbox(true);
  EXPECT_TRUE(again) << again.error().message;
  EXPECT_TRUE(StartSandbox());
}

TEST_F(PodRecovery, ACreateThatWasDoneIsNotDoneAgain) {
  AnnouncePod();
  ASSERT_TRUE(CreateSandbox());
  RestartEngine();
  EXPECT_TRUE(CreateSandbox(true));
  EXPECT_EQ(backend_.Count("create sandbox p1"), 1U);
  EXPECT_EQ(CodeOf(CreateSandbox()), Code::kAlreadyExists) << "that one is new";
}

TEST_F(PodRecovery, AStartThatWasUnderWayIsDoneAgain) {
  AnnouncePod();
  ASSERT_TRUE(CreateSandbox());
  backend_.Hold("start sandbox p1");
  SendSandbox("StartSandbox", Of<sandbox_pb::StartSandboxRequest>(), kPod);
  ASSERT_TRUE(Until([&] { return backend_.Held("start sandbox p1"); }));
  RestartEngine();
  backend_.Release("start sandbox p1");
  EXPECT_TRUE(StartSandbox(true));
  EXPECT_EQ(SandboxStatus()->state(), "SANDBOX_READY");
}

TEST_F(PodRecovery, AStartThatWasDoneIsNotDoneAgain) {
  RunPod();
  const uint32_t pid = SandboxStatus()->pid();
  RestartEngine();
  EXPECT_EQ(StartSandbox(true)->pid(), pid);
  EXPECT_EQ(backend_.Count("start sandbox p1"), 1U);
}

TEST_F(PodRecovery, AShutdownThatWasDoneIsAnsweredAgain) {
  RunPod();
  ASSERT_TRUE(ShutdownSandbox());
  RestartEngine();
  EXPECT_TRUE(ShutdownSandbox(true));
}

TEST_F(PodRecovery, ComesUpAfterAShortage) {
  RunPod();
  backend_.FailNext("recover sandbox p1", Error{Code::kResourceExhausted, 0, "no descriptors", {}});
  RestartEngine();
  EXPECT_EQ(SandboxStatus()->state(), "SANDBOX_READY");
  EXPECT_EQ(backend_.Count("recover sandbox p1"), 2U);
  Run("a", kPod);
}

TEST_F(PodRecovery, WithoutABackendItIsStillToldAndRemoved) {
  RunPod();
  Run("a", kPod);
  around_.backend_error = "libgantry_x.so: gone";
  RestartEngine();
  EXPECT_EQ(SandboxStatus()->state(), "SANDBOX_READY") << "by the record, it runs";
  EXPECT_TRUE(State("a"));
  EXPECT_EQ(backend_.Count("create sandbox p1"), 1U) << "no new one in its place";
  EXPECT_TRUE(ShutdownSandbox());
  EXPECT_EQ(CodeOf(SandboxStatus()), Code::kNotFound);
}

TEST_F(PodRecovery, WithoutABackendItsProcessIsKilled) {
  Child child;
  const ProcessId process = keeper_.AddOrphan(child.pid(), child.start_time());
  backend_.BindTo("sandbox p1", HostPid{child.pid()});
  RunPod();
  around_.backend_error = "libgantry_x.so: gone";
  RestartEngine();
  const uint32_t stop =
      SendSandbox("StopSandbox", Of<sandbox_pb::StopSandboxRequest>(), kPod, false);
  ASSERT_TRUE(Until([&] { return child.Ended().has_value(); }));
  keeper_.End(process, *child.Ended());
  EXPECT_TRUE(TakeAs<sandbox_pb::StopSandboxResponse>(stop));
  EXPECT_EQ(TakeWait(SendWaitSandbox())->exit_status(), 137U);
}

TEST_F(PodRecovery, AnEndThatCouldNotBeRecordedIsNotForgotten) {
  Child child;
  const ProcessId process = keeper_.AddOrphan(child.pid(), child.start_time());
  backend_.BindTo("sandbox p1", HostPid{child.pid()});
  RunPod();
  BlockRecord();
  ASSERT_EQ(kill(child.pid(), SIGKILL), 0);
  ASSERT_TRUE(Until([&] { return child.Ended().has_value(); }));
  keeper_.End(process, SIGKILL);
  EXPECT_EQ(TakeWait(SendWaitSandbox())->exit_status(), 137U);
  EXPECT_TRUE(keeper_.exits.contains(process)) << "the next engine has it from there only";
  UnblockRecord();
  RestartEngine();
  EXPECT_EQ(TakeWait(SendWaitSandbox(true))->exit_status(), 137U);
  EXPECT_TRUE(ShutdownSandbox());
  EXPECT_TRUE(Until([&] { return !keeper_.exits.contains(process); }));
}

TEST_F(PodRecovery, AContainerIsNoPod) {
  Run("c1");
  RestartEngine();
  EXPECT_EQ(State("c1")->status(), pb::RUNNING);
  EXPECT_EQ(CodeOf(TakeAs<sandbox_pb::PingResponse>(
                SendSandbox("PingSandbox", Of<sandbox_pb::PingRequest>("c1"), "c1"))),
            Code::kNotFound);
}

}  // namespace
}  // namespace gantry::task
