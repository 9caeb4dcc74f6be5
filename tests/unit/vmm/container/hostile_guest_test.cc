// SPDX-License-Identifier: Apache-2.0
//
// A guest that does not answer, or that says what is not so, keeps nobody from ending its pod.
#include <csignal>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vmm/container/pod_fixture.h"

namespace gantry::vmm {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class HostileGuest : public PodTest {
 protected:
  void SetUp() override {
    PodTest::SetUp();
    if (!pod_) {
      return;
    }
    // Nobody waits here.
    auto machine = std::make_unique<TestMachine>(vm_);
    machine_ = machine.get();
    pod_ = std::make_shared<Pod>(
        SandboxId::Parse("pod").value(), sandbox_, std::move(machine),
        Patience{.answer = std::chrono::milliseconds(20), .end = std::chrono::milliseconds(0)});
    ASSERT_TRUE(pod_->Boot("", {}));
    const ContainerRequest request = RequestOf({.script = "sleep 10000"});
    context_ = std::make_unique<TestContext>(request.id.str());
    container_ = Run(request, *context_);
  }

  void TearDown() override {
    vm_.silent = false;
    vm_.ended.reset();
    if (container_) {
      EXPECT_TRUE(container_->Delete());
      container_.reset();
    }
    PodTest::TearDown();
  }

  bool VmmRuns() const { return !vm_.vmm->Ended(); }

  bool VmmIsKilled() const {
    const auto end = vm_.vmm->Wait(std::chrono::seconds(60));
    return end && end->code() == 137;
  }

  std::unique_ptr<TestContext> context_;
  std::unique_ptr<VmmContainer> container_;
};

TEST_F(HostileGuest, ThatDoesNotAnswerAKillIsKilled) {
  vm_.silent = true;
  sandbox_.time_left = std::chrono::milliseconds(30);
  EXPECT_EQ(container_->Kill(SIGTERM).error().code, Code::kDeadlineExceeded);
  EXPECT_TRUE(VmmRuns()) << "a process may handle that signal as it likes";
  sandbox_.time_left = std::chrono::milliseconds(5);
  EXPECT_EQ(container_->Kill(SIGKILL).error().code, Code::kDeadlineExceeded);
  EXPECT_TRUE(VmmRuns()) << "it had hardly any time";
  sandbox_.time_left = std::chrono::milliseconds(30);
  EXPECT_TRUE(container_->Kill(SIGKILL));
  EXPECT_TRUE(VmmIsKilled());
}

TEST_F(HostileGuest, ThatDoesNotAnswerADeleteIsKilled) {
  vm_.silent = true;
  sandbox_.time_left = std::chrono::milliseconds(30);
  EXPECT_TRUE(container_->Delete());
  EXPECT_TRUE(VmmIsKilled());
  EXPECT_THAT(context_->words(), ElementsAre("exited 137"));
  EXPECT_THAT(vm_.storage.added, IsEmpty());
}

TEST_F(HostileGuest, ThatSaysItHasKilledWhatDoesNotEndIsKilled) {
  // Its ends are told to nobody.
  vm_.host->Hear({});
  EXPECT_TRUE(container_->Kill(SIGKILL));
  EXPECT_TRUE(VmmRuns());
  while (container_->Kill(SIGKILL) && VmmRuns()) {
  }
  EXPECT_TRUE(VmmIsKilled());
}

TEST_F(HostileGuest, DoesNotHoldUpACreationBeyondItsTime) {
  vm_.silent = true;
  sandbox_.time_left = std::chrono::milliseconds(30);
  const ContainerRequest request = RequestOf({.script = "exit 0"});
  TestContext context(request.id.str());
  VmmContainer container(request, context.fake, pod_, false);
  EXPECT_EQ(container.Create(request, nullptr).error().code, Code::kDeadlineExceeded);
  EXPECT_EQ(vm_.storage.added.count(request.id.str()), 0U);
  EXPECT_EQ(vm_.rooms.count(request.id.str()), 0U);
}

}  // namespace
}  // namespace gantry::vmm
