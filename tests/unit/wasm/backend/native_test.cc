// SPDX-License-Identifier: Apache-2.0
//
// Containers of programs for the kernel: what stands beside modules in a pod.
#include <gmock/gmock.h>

#include "tests/unit/wasm/backend/fixture.h"

namespace gantry::wasm {
namespace {

using testing::HasSubstr;

class WasmNativeTest : public WasmBackendTest {};

TEST_F(WasmNativeTest, RunsItsProgram) {
  const ClientStreams client = container_.process.OpenStreams().value();
  const auto made = Create(R"(["/bin/sh", "-c", "busybox hostname; exit 7"])");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_FALSE(container_.process.bound->Ended()) << "it waits for its Start";
  EXPECT_FALSE((*made)->HasStarted().value());
  ASSERT_TRUE((*made)->Start());
  EXPECT_TRUE((*made)->HasStarted().value());
  EXPECT_EQ(End(container_.process), 7U);
  EXPECT_EQ(ReadStream(client.out), "made\n");
  EXPECT_EQ(artifacts_->asked, 0);
  EXPECT_EQ(container_.made_cgroups, CgroupDevices::kOfSpec);
  EXPECT_TRUE((*made)->Delete());
  EXPECT_TRUE((*made)->Delete()) << "again";
  EXPECT_TRUE(context_.stored.empty());
}

TEST_F(WasmNativeTest, RunsHooksWhereTheyStand) {
  const auto made = Create(R"(["/bin/sh", "-c", "exit 0"])");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(container_.hooks, std::vector{HookPoint::kCreate});
  ASSERT_TRUE((*made)->Start());
  ASSERT_TRUE((*made)->Delete());
  EXPECT_EQ(container_.hooks,
            (std::vector{HookPoint::kCreate, HookPoint::kStart, HookPoint::kDelete}));
}

TEST_F(WasmNativeTest, SaysWhichHooksItLeavesOut) {
  container_.inside_hooks.create_container = true;
  container_.inside_hooks.start_container = true;
  ASSERT_TRUE(Create(R"(["/bin/sh"])"));
  EXPECT_TRUE(context_.WaitForLog("hooks of createContainer are not run"));
  EXPECT_TRUE(context_.WaitForLog("hooks of startContainer are not run"));
}

TEST_F(WasmNativeTest, LeavesNothingOfOneThatFails) {
  const auto made = Create(R"(["/no/such/program"])");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kNotFound);
  EXPECT_THAT(made.error().message, HasSubstr("create container 'c1'"));
  EXPECT_THAT(made.error().message, HasSubstr("/no/such/program"));
  EXPECT_EQ(container_.hooks, std::vector{HookPoint::kDelete});
  EXPECT_TRUE(context_.stored.empty());
  EXPECT_TRUE(Create(R"(["/bin/sh"])")) << "the id is free";
}

TEST_F(WasmNativeTest, StartsInTheNextEngine) {
  const ClientStreams client = container_.process.OpenStreams().value();
  auto made = Create(R"(["/bin/sh", "-c", "echo there"])");
  ASSERT_TRUE(made) << made.error().message;
  made->reset();
  RestartEngine();
  const auto found = sandbox_->RecoverContainer(request_, container_, container_.blob);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_FALSE((*found)->HasStarted().value());
  ASSERT_TRUE((*found)->Start());
  EXPECT_EQ(End(container_.process), 0U);
  EXPECT_EQ(ReadStream(client.out), "there\n");
}

TEST_F(WasmNativeTest, AbortsWhatWasNeverMade) {
  const auto found = sandbox_->RecoverContainer(Request(R"(["/bin/sh"])"), container_, "");
  EXPECT_EQ(found.error().code, Code::kAborted);
  EXPECT_EQ(container_.hooks, std::vector{HookPoint::kDelete});
}

TEST_F(WasmNativeTest, RunsAnExecInItsContainer) {
  const auto made = Create(R"(["/bin/sh", "-c", "exec busybox sleep 1000"])");
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_TRUE((*made)->Start());
  FakeProcessContext process("c1", "x1");
  const ClientStreams client = process.OpenStreams().value();
  ExecRequest request;
  request.id = process.exec();
  request.process_json = ProcessOf(R"(["sh", "-c", "busybox hostname; exit 3"])");
  const auto exec = (*made)->Exec(request, process);
  ASSERT_TRUE(exec) << exec.error().message;
  EXPECT_EQ(process.bound, nullptr) << "nothing runs yet";
  const Status started = (*exec)->Start();
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_EQ(End(process), 3U);
  EXPECT_EQ(ReadStream(client.out), "made\n");
  EXPECT_TRUE((*exec)->Delete());
  EXPECT_FALSE(container_.process.bound->Ended()) << "that is the container's";
  EXPECT_TRUE((*made)->Delete());
  EXPECT_EQ(End(container_.process), 137U);
}

TEST_F(WasmNativeTest, SaysWhyAnExecCannotBe) {
  root_.Write("text", "hello\n", 0755);
  const auto made = Create(R"(["/bin/sh", "-c", "exec busybox sleep 1000"])");
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_TRUE((*made)->Start());
  FakeProcessContext process("c1", "x1");
  ExecRequest request;
  request.id = process.exec();
  request.process_json = ProcessOf(R"(["/text"])");
  const auto exec = (*made)->Exec(request, process);
  ASSERT_TRUE(exec);
  const Status started = (*exec)->Start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(started.error().message, HasSubstr("start exec 'x1'"));
  EXPECT_THAT(started.error().message, HasSubstr("'/text': it is text"));
  EXPECT_TRUE((*made)->Delete());
}

TEST_F(WasmNativeTest, RefusesWhoCouldMakeDevicesWithoutACgroup) {
  ContainerRequest request = Request(R"(["/bin/sh"])");
  const std::string user = R"("user": {"uid": 0, "gid": 0})";
  request.spec_json.replace(request.spec_json.find(user), user.size(),
                            user + R"(, "capabilities": {"bounding": ["CAP_MKNOD"]})");
  const auto made = sandbox_->CreateContainer(request, container_);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kUnimplemented);
  EXPECT_THAT(made.error().message, HasSubstr("CAP_MKNOD"));
}

TEST_F(WasmNativeTest, RefusesCheckpointsByName) {
  const auto made = Create(R"(["/bin/sh"])");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ((*made)->Checkpoint({}).error().code, Code::kUnimplemented);
  EXPECT_THAT((*made)->Checkpoint({}).error().message, HasSubstr("checkpoint container 'c1'"));
  EXPECT_TRUE((*made)->Delete());
  ContainerRequest request = Request(R"(["/bin/sh"])");
  request.checkpoint = "/somewhere";
  EXPECT_EQ(sandbox_->CreateContainer(request, container_).error().code, Code::kUnimplemented);
}

}  // namespace
}  // namespace gantry::wasm
