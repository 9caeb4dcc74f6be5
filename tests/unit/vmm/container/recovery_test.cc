// SPDX-License-Identifier: Apache-2.0
//
// The engine goes and comes, between any two steps of a container's or an exec's life.
#include <csignal>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/vmm/container/exec.h"
#include "tests/unit/vmm/container/pod_fixture.h"

namespace gantry::vmm {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class VmmRecovery : public PodTest {
 protected:
  std::unique_ptr<VmmContainer> Recover(const ContainerRequest& request, TestContext& context) {
    auto container = std::make_unique<VmmContainer>(request, context.fake, pod_, false);
    const Status recovered = container->Recover(request, context.fake.blob);
    EXPECT_TRUE(recovered) << recovered.error().message;
    return container;
  }

  /// The engine has been killed: what it had of the container is gone.
  void KillEngine(std::unique_ptr<VmmContainer>& container, TestContext& context) {
    container.reset();
    RestartEngine();
    context.fake.RestartEngine();
  }
};

TEST_F(VmmRecovery, OfARunningContainerMissesNothing) {
  const ContainerRequest request = RequestOf({.script = "read line; exit 9"});
  TestContext context(request.id.str());
  auto container = Run(request, context);
  ASSERT_TRUE(container->Update(R"({"memory": {"limit": 67108864}})"));
  KillEngine(container, context);
  container = Recover(request, context);
  EXPECT_EQ(context.fake.process.pid, vm_.vmm->pid());
  EXPECT_TRUE(container->HasStarted().value());
  EXPECT_EQ(vm_.rooms[request.id.str()].memory, 67108864) << "as it was updated";
  EndStream(context.fake.process.attached.at(Stream::kStdin));
  EXPECT_EQ(context.WaitForExit(), 9U);
  EXPECT_TRUE(container->Delete());
}

TEST_F(VmmRecovery, OfAContainerThatHasEndedMeanwhileKeepsItsCode) {
  const ContainerRequest request = RequestOf({.script = "read line; exit 9"});
  TestContext context(request.id.str());
  auto container = Run(request, context);
  container.reset();
  vm_.host->Hear({});
  EndStream(context.fake.process.attached.at(Stream::kStdin));
  EXPECT_EQ(vm_.host->WaitForExit(request.id.str()), 9U);
  RestartEngine();
  container = Recover(request, context);
  EXPECT_THAT(context.words(), ElementsAre("exited 9"));
  EXPECT_TRUE(container->HasStarted().value());
  EXPECT_TRUE(container->Start()) << "it comes again where its hooks were cut short";
  EXPECT_TRUE(container->Delete());
}

TEST_F(VmmRecovery, OfAContainerThatWaitsForItsStart) {
  const ContainerRequest request = RequestOf({.script = "exit 4"});
  TestContext context(request.id.str());
  auto container = Create(request, context);
  KillEngine(container, context);
  container = Recover(request, context);
  EXPECT_FALSE(container->HasStarted().value());
  ASSERT_TRUE(container->Start());
  EXPECT_EQ(context.WaitForExit(), 4U);
  EXPECT_TRUE(container->Delete());
}

TEST_F(VmmRecovery, OfACreationThatWasCutShortLeavesNothing) {
  const ContainerRequest request = RequestOf({.script = "exit 4"});
  TestContext context(request.id.str());
  auto container = Create(request, context);
  context.fake.blob.clear();
  KillEngine(container, context);
  VmmContainer half(request, context.fake, pod_, false);
  const Status recovered = half.Recover(request, "");
  ASSERT_FALSE(recovered);
  EXPECT_EQ(recovered.error().code, Code::kAborted);
  EXPECT_THAT(Listed(), IsEmpty());
  EXPECT_THAT(vm_.storage.added, IsEmpty());
  TestContext anew(request.id.str());
  auto again = Run(request, anew);
  EXPECT_EQ(anew.WaitForExit(), 4U);
  EXPECT_TRUE(again->Delete());
}

TEST_F(VmmRecovery, OfAMachineThatIsGoneEndsItsContainers) {
  const ContainerRequest request = RequestOf({.script = "sleep 1000"});
  TestContext context(request.id.str());
  auto container = Run(request, context);
  container.reset();
  vm_.started.reset();
  RestartEngine();
  container = Recover(request, context);
  EXPECT_THAT(context.words(), ElementsAre("exited 137"));
  EXPECT_TRUE(container->Delete());
}

TEST_F(VmmRecovery, OfItsConnectionAloneMissesNoEnd) {
  const ContainerRequest request = RequestOf({.script = "read line; exit 9"});
  TestContext context(request.id.str());
  auto container = Run(request, context);
  vm_.host->Disconnect();
  EndStream(context.fake.process.attached.at(Stream::kStdin));
  // The container's end closes its streams.
  EXPECT_EQ(vmm::ReadStream(context.fake.process.attached.at(Stream::kStdout)), "");
  ASSERT_TRUE(vm_.host->Connect());
  while (Listed().at(0).processes.at(0).state !=
         static_cast<uint32_t>(protocol::ProcessState::kExited)) {
  }
  machine_->Reconnect();
  EXPECT_EQ(context.WaitForExit(), 9U);
  EXPECT_TRUE(container->Delete());
}

// A guest that dials again and again and answers nothing has nobody wait for it.
TEST_F(VmmRecovery, OfTheConnectionOfASilentGuestIsNotWaitedFor) {
  const ContainerRequest request = RequestOf({.script = "sleep 1000"});
  TestContext context(request.id.str());
  auto container = Run(request, context);
  vm_.silent = true;
  machine_->Reconnect();
  EXPECT_EQ(vm_.waited, 0);
  vm_.silent = false;
  EXPECT_TRUE(container->Delete());
}

class VmmExecRecovery : public VmmRecovery {
 protected:
  void SetUp() override {
    PodTest::SetUp();
    if (!pod_) {
      return;
    }
    const ContainerRequest request = RequestOf({.script = "sleep 10000"});
    id_ = request.id.str();
    context_ = std::make_unique<TestContext>(id_);
    container_ = Run(request, *context_);
    request_ = request;
  }

  void TearDown() override {
    if (container_) {
      EXPECT_TRUE(container_->Delete());
      container_.reset();
    }
    PodTest::TearDown();
  }

  void Restart() {
    KillEngine(container_, *context_);
    container_ = Recover(request_, *context_);
  }

  Result<std::unique_ptr<Process>> RecoverExec(ExecRequest request, TestExecContext& context) {
    request.saved = context.blob;
    return container_->RecoverExec(request, context, true);
  }

  std::string id_;
  ContainerRequest request_;
  std::unique_ptr<TestContext> context_;
  std::unique_ptr<VmmContainer> container_;
};

TEST_F(VmmExecRecovery, OfARunningOneMissesNothing) {
  const ExecRequest request = ExecOf("one", {.script = "read line; exit 8"});
  TestExecContext context(id_, "one");
  auto exec = container_->Exec(request, context).value();
  ASSERT_TRUE(exec->Start());
  exec.reset();
  Restart();
  exec = RecoverExec(request, context).value();
  EndStream(context.attached.at(Stream::kStdin));
  EXPECT_EQ(context.WaitForExit(), 8U);
  EXPECT_TRUE(exec->Delete());
}

TEST_F(VmmExecRecovery, OfOneThatHasEndedMeanwhileKeepsItsCode) {
  const ExecRequest request = ExecOf("one", {.script = "read line; exit 8"});
  TestExecContext context(id_, "one");
  auto exec = container_->Exec(request, context).value();
  ASSERT_TRUE(exec->Start());
  exec.reset();
  EndStream(context.attached.at(Stream::kStdin));
  EXPECT_EQ(vm_.host->WaitForExit(id_, "one"), 8U);
  Restart();
  exec = RecoverExec(request, context).value();
  EXPECT_EQ(context.WaitForExit(), 8U);
  EXPECT_TRUE(exec->Delete());
}

TEST_F(VmmExecRecovery, OfOneThatWasMadeAndNotStartedStartsIt) {
  const ExecRequest request = ExecOf("one", {.script = "exit 8"});
  TestExecContext context(id_, "one");
  context.blob = "made";
  ASSERT_TRUE(vm_.host->client().Call(
      protocol::CreateExec{
          .container = id_, .exec = "one", .process_json = request.process_json, .streams = {}},
      Soon()));
  Restart();
  auto exec = RecoverExec(request, context);
  ASSERT_TRUE(exec) << exec.error().message;
  EXPECT_EQ(context.WaitForExit(), 8U);
  EXPECT_TRUE((*exec)->Delete());
}

TEST_F(VmmExecRecovery, OfOneWhoseStreamsNobodyHasLeavesNothing) {
  const ExecRequest request = ExecOf("one", {.script = "exit 8"});
  TestExecContext context(id_, "one");
  ASSERT_TRUE(vm_.host->client().Call(
      protocol::CreateExec{
          .container = id_, .exec = "one", .process_json = request.process_json, .streams = {}},
      Soon()));
  Restart();
  const auto exec = RecoverExec(request, context);
  ASSERT_FALSE(exec);
  EXPECT_EQ(exec.error().code, Code::kAborted);
  EXPECT_THAT(Listed().at(0).processes, SizeIs(1));
  // The Start that is replayed.
  auto again = container_->Exec(request, context).value();
  ASSERT_TRUE(again->Start());
  EXPECT_EQ(context.WaitForExit(), 8U);
  EXPECT_TRUE(again->Delete());
}

}  // namespace
}  // namespace gantry::vmm
