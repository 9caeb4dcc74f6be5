// SPDX-License-Identifier: Apache-2.0
//
// The three kinds of sandboxes: whose the machine is, when it is started, when it ends.
#include "plugins/vmm/pod/sandbox.h"

#include <csignal>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vmm/container/pod_fixture.h"

namespace gantry::vmm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class VmmSandboxes : public PodTest {
 protected:
  void SetUp() override {
    PodTest::SetUp();
    // It is the sandbox that has one here.
    pod_.reset();
    vm_.started.reset();
  }

  std::unique_ptr<Sandbox> Make(SandboxKind kind) {
    request_.id = SandboxId::Parse("pod").value();
    request_.ns = Namespace::Parse("k8s.io").value();
    request_.kind = kind;
    request_.bundle = bundle_.path();
    request_.netns_path = "/run/netns/of-the-pod";
    request_.cgroups = {"/sys/fs/cgroup/of-the-pod"};
    auto made = VmmSandbox::Make(request_, sandbox_, std::make_unique<TestMachine>(vm_));
    EXPECT_TRUE(made) << made.error().message;
    return std::move(made).value_or(nullptr);
  }

  std::unique_ptr<Sandbox> Recovered() {
    vm_.host->Disconnect();
    sandbox_.RestartEngine();
    EXPECT_TRUE(vm_.host->Connect());
    auto made =
        VmmSandbox::Recover(request_, sandbox_, std::make_unique<TestMachine>(vm_), sandbox_.blob);
    EXPECT_TRUE(made) << made.error().message;
    return std::move(made).value_or(nullptr);
  }

  SandboxRequest request_;
};

TEST_F(VmmSandboxes, OfAContainerAloneAreItsMachine) {
  auto sandbox = Make(SandboxKind::kImplied);
  ASSERT_TRUE(sandbox->Start());
  EXPECT_FALSE(vm_.started) << "not before there is a container";
  const ContainerRequest request =
      RequestOf({.linux_part = R"("resources": {"memory": {"limit": 67108864}})",
                 .script = "echo up; sleep 1000",
                 .namespaces = {}});
  TestContext context(request.id.str());
  auto container = sandbox->CreateContainer(request, context.fake);
  ASSERT_TRUE(container) << container.error().message;
  ASSERT_TRUE(vm_.started);
  EXPECT_EQ(vm_.started->netns_path, "/run/netns/of-the-pod");
  EXPECT_EQ(vm_.started->limits.memory, 67108864);
  EXPECT_EQ(sandbox->Info().value().at("vmm"), "test");
  ASSERT_TRUE((*container)->Start());
  EXPECT_EQ(ReadUntil(context.fake.process.attached.at(Stream::kStdout), "up"), "up\n");
  ASSERT_TRUE((*container)->Delete());
  EXPECT_EQ(vm_.shutdowns, 1) << "it ends with its container";
  EXPECT_THAT(context.words(), ElementsAre("exited 137"));
  EXPECT_TRUE(sandbox->Shutdown());
}

TEST_F(VmmSandboxes, WithAPauseContainerHaveNoProcessForIt) {
  auto sandbox = Make(SandboxKind::kPaused);
  const ContainerRequest pause = RequestOf({.script = "exit 99"});
  TestContext its(pause.id.str());
  auto paused = sandbox->CreateContainer(pause, its.fake);
  ASSERT_TRUE(paused) << paused.error().message;
  EXPECT_EQ(its.fake.process.pid, vm_.vmm->pid());
  ASSERT_TRUE((*paused)->Start());
  EXPECT_THAT(Listed(), IsEmpty());
  EXPECT_EQ((*paused)->Processes().value().at(0).pid, static_cast<uint32_t>(vm_.vmm->pid().value));
  TestExecContext exec(pause.id.str(), "e");
  EXPECT_EQ((*paused)->Exec(ExecOf("e", {}), exec).error().code, Code::kFailedPrecondition);
  const ContainerRequest request = RequestOf({.script = "exit 3"});
  TestContext context(request.id.str());
  auto container = sandbox->CreateContainer(request, context.fake);
  ASSERT_TRUE(container) << container.error().message;
  ASSERT_TRUE((*container)->Start());
  EXPECT_EQ(context.WaitForExit(), 3U);
  ASSERT_TRUE((*container)->Delete());
  EXPECT_EQ(vm_.shutdowns, 0) << "the pod goes on";
  ASSERT_TRUE((*paused)->Kill(SIGCHLD));
  EXPECT_THAT(its.words(), IsEmpty());
  ASSERT_TRUE((*paused)->Kill(SIGKILL));
  EXPECT_THAT(its.words(), ElementsAre("exited 137"));
  EXPECT_EQ((*paused)->Kill(SIGKILL).error().code, Code::kNotFound);
  ASSERT_TRUE((*paused)->Delete());
  EXPECT_EQ(vm_.shutdowns, 1);
}

TEST_F(VmmSandboxes, WithAPauseContainerAreTakenUpByTheNextEngine) {
  auto sandbox = Make(SandboxKind::kPaused);
  const ContainerRequest pause = RequestOf({.script = "exit 99"});
  TestContext its(pause.id.str());
  auto paused = sandbox->CreateContainer(pause, its.fake);
  ASSERT_TRUE(paused) << paused.error().message;
  const ContainerRequest request = RequestOf({.script = "read line; exit 3"});
  TestContext context(request.id.str());
  auto container = sandbox->CreateContainer(request, context.fake);
  ASSERT_TRUE(container) << container.error().message;
  ASSERT_TRUE((*container)->Start());
  (*container).reset();
  (*paused).reset();
  sandbox.reset();
  sandbox = Recovered();
  paused = sandbox->RecoverContainer(pause, its.fake, its.fake.blob);
  ASSERT_TRUE(paused) << paused.error().message;
  container = sandbox->RecoverContainer(request, context.fake, context.fake.blob);
  ASSERT_TRUE(container) << container.error().message;
  EndStream(context.fake.process.attached.at(Stream::kStdin));
  EXPECT_EQ(context.WaitForExit(), 3U);
  EXPECT_TRUE((*container)->Delete());
  EXPECT_TRUE((*paused)->Delete());
  EXPECT_EQ(vm_.shutdowns, 1);
}

TEST_F(VmmSandboxes, WhoseRecordCannotBeReadHaveEnded) {
  auto sandbox = Make(SandboxKind::kPaused);
  const ContainerRequest pause = RequestOf({.script = "exit 99"});
  TestContext its(pause.id.str());
  auto paused = sandbox->CreateContainer(pause, its.fake);
  ASSERT_TRUE(paused) << paused.error().message;
  const ContainerRequest request = RequestOf({.script = "sleep 1000"});
  TestContext context(request.id.str());
  auto container = sandbox->CreateContainer(request, context.fake);
  ASSERT_TRUE(container) << container.error().message;
  (*container).reset();
  (*paused).reset();
  sandbox.reset();
  sandbox_.blob = "\xff\xff";
  sandbox = Recovered();
  ASSERT_TRUE(vm_.recovered) << "who ends it has to look for it";
  EXPECT_EQ(vm_.recovered->netns_path, "/run/netns/of-the-pod") << "where its taps are";
  // In any order.
  container = sandbox->RecoverContainer(request, context.fake, context.fake.blob);
  ASSERT_TRUE(container) << container.error().message;
  EXPECT_EQ(context.WaitForExit(), 137U);
  paused = sandbox->RecoverContainer(pause, its.fake, its.fake.blob);
  ASSERT_TRUE(paused) << paused.error().message;
  EXPECT_EQ(its.WaitForExit(), 137U);
  EXPECT_TRUE((*container)->Delete());
  EXPECT_TRUE((*paused)->Delete());
  EXPECT_TRUE(sandbox->Shutdown());
}

TEST_F(VmmSandboxes, WithoutAPauseContainerWhoseRecordCannotBeReadHaveEnded) {
  auto sandbox = Make(SandboxKind::kPauseless);
  ASSERT_TRUE(sandbox->Start());
  sandbox.reset();
  sandbox_.blob = "\xff\xff";
  sandbox = Recovered();
  ASSERT_TRUE(sandbox_.exited);
  EXPECT_NE(sandbox_.exited->status, 0U);
  EXPECT_TRUE(sandbox->Shutdown());
}

TEST_F(VmmSandboxes, WhoseMachineDoesNotStartSayWhyAndLeaveNothing) {
  auto sandbox = Make(SandboxKind::kPaused);
  vm_.refuse_start = Error{Code::kFailedPrecondition, 0, "boot: the console's last lines", {}};
  const ContainerRequest pause = RequestOf({.script = "exit 99"});
  TestContext its(pause.id.str());
  const auto failed = sandbox->CreateContainer(pause, its.fake);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(failed.error().message, HasSubstr("the console's last lines"));
  EXPECT_THAT(its.words(), IsEmpty());
  // A start that an engine's end has cut short.
  sandbox.reset();
  sandbox = Recovered();
  const auto recovered = sandbox->RecoverContainer(pause, its.fake, "");
  ASSERT_FALSE(recovered);
  EXPECT_EQ(recovered.error().code, Code::kAborted);
  vm_.refuse_start.reset();
  auto again = sandbox->CreateContainer(pause, its.fake);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE((*again)->Delete());
}

TEST_F(VmmSandboxes, OfTheNodesNetworkAreRefusedBeforeAnythingIsMade) {
  auto sandbox = Make(SandboxKind::kPaused);
  ContainerRequest pause = RequestOf({});
  pause.spec_json = container::Bundle::TextOf({});
  TestContext its(pause.id.str());
  const auto refused = sandbox->CreateContainer(pause, its.fake);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(refused.error().message, HasSubstr("hostNetwork"));
  EXPECT_FALSE(vm_.started);
}

TEST_F(VmmSandboxes, WithoutAPauseContainerAreBoundToTheirMachine) {
  auto sandbox = Make(SandboxKind::kPauseless);
  ASSERT_TRUE(sandbox->Start());
  ASSERT_TRUE(sandbox_.bound);
  EXPECT_EQ(sandbox_.bound->pid(), vm_.vmm->pid());
  EXPECT_THAT(vm_.started->cgroups, ElementsAre("/sys/fs/cgroup/of-the-pod"));
  sandbox.reset();
  sandbox = Recovered();
  ASSERT_TRUE(sandbox_.bound) << "again";
  EXPECT_TRUE(sandbox->Stop(std::chrono::seconds(1)));
  EXPECT_TRUE(sandbox->Stop(std::chrono::seconds(1))) << "again";
  EXPECT_TRUE(sandbox->Shutdown());
  EXPECT_TRUE(sandbox->Shutdown()) << "again";
  EXPECT_GE(vm_.shutdowns, 1);
}

TEST_F(VmmSandboxes, WithoutAPauseContainerStartAgainAfterAFailure) {
  auto sandbox = Make(SandboxKind::kPauseless);
  vm_.refuse_start = Error{Code::kDeadlineExceeded, 0, "it has not said hello", {}};
  EXPECT_EQ(sandbox->Start().error().code, Code::kDeadlineExceeded);
  EXPECT_FALSE(sandbox_.bound);
  vm_.refuse_start.reset();
  ASSERT_TRUE(sandbox->Start());
  const ContainerRequest request = RequestOf({.script = "exit 3"});
  TestContext context(request.id.str());
  auto container = sandbox->CreateContainer(request, context.fake);
  ASSERT_TRUE(container) << container.error().message;
  ASSERT_TRUE((*container)->Start());
  EXPECT_EQ(context.WaitForExit(), 3U) << "its end is not taken for the machine's";
  EXPECT_TRUE((*container)->Delete());
  EXPECT_TRUE(sandbox->Shutdown());
}

}  // namespace
}  // namespace gantry::vmm
