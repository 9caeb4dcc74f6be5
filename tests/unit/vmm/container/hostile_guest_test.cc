// SPDX-License-Identifier: Apache-2.0
//
// A guest that does not answer, or that says what is not so, keeps nobody from ending its pod.
#include <csignal>
#include <functional>
#include <map>
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

// Whatever is asked of it: the call ends in its time, and where the guest comes to itself again
// nothing is lost.
using SilentGuest = PodTest;

TEST_F(SilentGuest, HoldsUpNoCallBeyondItsTime) {
  const ContainerRequest request = RequestOf({.script = "sleep 10000"});
  TestContext context(request.id.str());
  const auto container = Run(request, context);
  const std::string id = request.id.str();
  TestExecContext its(id, "exec");
  VmmExec exec(pod_, id, ExecOf("exec", {.script = "exit 0"}), its);
  const std::map<std::string, std::function<Status()>> calls = {
      {"pause", [&] { return container->Pause(); }},
      {"resume", [&] { return container->Resume(); }},
      {"update", [&] { return container->Update(R"({"memory": {"limit": 67108864}})"); }},
      {"resize", [&] { return container->Resize({80, 25}); }},
      {"signal", [&] { return container->Kill(SIGTERM); }},
      {"signal all", [&] { return container->KillAll(SIGTERM); }},
      {"stats",
       [&]() -> Status {
         GANTRY_CHECK_OK(container->Stats());
         return {};
       }},
      {"processes",
       [&]() -> Status {
         GANTRY_CHECK_OK(container->Processes());
         return {};
       }},
      {"start of an exec", [&] { return exec.Start(); }}};
  vm_.silent = true;
  sandbox_.time_left = std::chrono::milliseconds(5);
  for (const auto& [name, call] : calls) {
    const Status late = call();
    ASSERT_FALSE(late) << name;
    EXPECT_EQ(late.error().code, Code::kDeadlineExceeded) << name << ": " << late.error().message;
  }
  EXPECT_FALSE(vm_.vmm->Ended()) << "none of these is worth a machine";
  vm_.silent = false;
  sandbox_.time_left = std::chrono::minutes(1);
  EXPECT_TRUE(container->Pause());
  EXPECT_TRUE(container->Resume());
  EXPECT_EQ(container->Processes().value().size(), 1U);
  EXPECT_TRUE(container->Delete());
}

TEST_F(HostileGuest, WhoseWarningsAreNoTextIsLoggedInPlainLines) {
  vm_.warnings = {"first\nsecond\x1b[2J", std::string(5000, 'x')};
  const ContainerRequest request = RequestOf({.script = "sleep 1000"});
  TestContext context(request.id.str());
  auto container = Create(request, context);
  EXPECT_TRUE(sandbox_.WaitForLog("first?second?[2J"));
  for (const std::string& line : sandbox_.log) {
    EXPECT_LT(line.size(), 1000U);
    EXPECT_FALSE(line.contains('\n'));
  }
  EXPECT_TRUE(container->Delete());
}

}  // namespace
}  // namespace gantry::vmm
