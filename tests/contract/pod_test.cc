// SPDX-License-Identifier: Apache-2.0
//
// Pods without a pause container: the Sandbox service before the real keeper and
// engine, and kill -9 of the engine at every step.
#include <signal.h>

#include <functional>
#include <list>

#include <gmock/gmock.h>

#include "tests/contract/harness/contract_test.h"
#include "tests/contract/harness/interrupt.h"
#include "tests/contract/harness/pod_box.h"
#include "tests/integration/harness/host.h"

namespace gantry::contract {
namespace {

using ::testing::ElementsAre;

class PodContract : public ContractTest {
 protected:
  void TearDown() override {
    for (Box& box : members_) {
      EXPECT_OK(box.Finish()) << box.id();
    }
    for (PodBox& pod : pods_) {
      EXPECT_OK(pod.Finish()) << pod.id();
    }
    ContractTest::TearDown();
  }

  PodBox& AnnouncedPod(std::string_view suffix = "") {
    PodBox& pod = pods_.emplace_back(node(), Id("-pod" + std::string(suffix)), backend());
    EXPECT_TRUE(pod.Announce());
    return pod;
  }

  PodBox& RunningPod(std::string_view suffix = "") {
    PodBox& pod = AnnouncedPod(suffix);
    EXPECT_OK(pod.Create());
    EXPECT_OK(pod.Start());
    return pod;
  }

  /// A container in the pod, as containerd 2.x makes it: without a shim of its own.
  Box& Member(const PodBox& pod, BoxOptions options = {}, std::string_view suffix = "") {
    options.group = pod.id();
    Box& box = members_.emplace_back(node(), Id("-in" + std::string(suffix)), backend(),
                                     std::move(options));
    box.Join(pod.client().path());
    return box;
  }

 private:
  std::list<PodBox> pods_;
  std::list<Box> members_;
};

INSTANTIATE_CONTRACT(PodContract);

TEST_P(PodContract, LivesAndEnds) {
  PodBox& pod = AnnouncedPod();
  ASSERT_OK(pod.Create());
  const auto started = pod.Start();
  ASSERT_OK(started);
  EXPECT_EQ(kill(static_cast<pid_t>(started->pid()), 0), 0) << "CRI wants a live process";
  const auto ready = pod.GetStatus();
  EXPECT_EQ(ready->state(), "SANDBOX_READY");
  EXPECT_EQ(ready->pid(), started->pid());
  EXPECT_OK(pod.Platform());
  EXPECT_OK(pod.Metrics());
  ASSERT_OK(pod.Stop());
  EXPECT_OK(pod.Wait());
  EXPECT_EQ(pod.GetStatus()->state(), "SANDBOX_NOTREADY");
  ASSERT_OK(pod.Shutdown());
  EXPECT_CODE(pod.GetStatus(), kNotFound);
}

TEST_P(PodContract, HoldsContainers) {
  const PodBox& pod = RunningPod();
  Box& first = Member(pod, {.args = {"sh", "-c", "exit 3"}}, "-1");
  Box& second = Member(pod, {}, "-2");
  for (Box* box : {&first, &second}) {
    ASSERT_OK(box->Create());
    ASSERT_OK(box->Start());
  }
  EXPECT_EQ(first.Wait()->exit_status(), 3U);
  EXPECT_EQ(first.Delete()->exit_status(), 3U);
  EXPECT_THAT(node().containerd().WaitForTopics(first.id(), 4),
              ElementsAre("create", "start", "exit", "delete"));
  EXPECT_EQ(second.State()->status(), pb::RUNNING);
  EXPECT_EQ(pod.GetStatus()->state(), "SANDBOX_READY");
}

TEST_P(PodContract, ThatEndsByItselfEndsItsContainers) {
  const PodBox& pod = RunningPod();
  const Box& box = Member(pod);
  ASSERT_OK(box.Create());
  ASSERT_OK(box.Start());
  ASSERT_EQ(kill(static_cast<pid_t>(pod.GetStatus()->pid()), SIGKILL), 0);
  EXPECT_EQ(pod.Wait()->exit_status(), 137U);
  EXPECT_OK(box.Wait());
  EXPECT_EQ(box.State()->status(), pb::STOPPED);
}

TEST_P(PodContract, IsEndedByTheShimsDelete) {
  PodBox& pod = RunningPod();
  const auto pid = static_cast<pid_t>(pod.GetStatus()->pid());
  const auto deleted = node().ShimDelete(pod.id(), pod.bundle());
  ASSERT_OK(deleted);
  EXPECT_NE(kill(pid, 0), 0);
}

struct PodStep {
  const char* name;
  std::function<Status(const PodBox&)> call;
};

const std::vector<PodStep>& PodLife() {
  static const std::vector<PodStep> steps = {
      {"CreateSandbox", [](const PodBox& pod) { return pod.Create(); }},
      {"StartSandbox", [](const PodBox& pod) { return Plain(pod.Start()); }},
      {"SandboxStatus", [](const PodBox& pod) { return Plain(pod.GetStatus()); }},
      {"Platform", [](const PodBox& pod) { return Plain(pod.Platform()); }},
      {"SandboxMetrics", [](const PodBox& pod) { return Plain(pod.Metrics()); }},
      {"PingSandbox", [](const PodBox& pod) { return pod.Ping(); }},
      {"StopSandbox", [](const PodBox& pod) { return pod.Stop(); }},
      {"WaitSandbox", [](const PodBox& pod) { return Plain(pod.Wait()); }},
      {"ShutdownSandbox", [](const PodBox& pod) { return pod.Shutdown(); }},
  };
  return steps;
}

TEST_P(PodContract, OutlivesTheEngineBeforeEachCall) {
  const PodBox& pod = AnnouncedPod();
  for (const PodStep& step : PodLife()) {
    node().KillEngine();
    ASSERT_OK(step.call(pod)) << step.name;
  }
}

TEST_P(PodContract, OutlivesTheEngineWithAContainerInIt) {
  const PodBox& pod = RunningPod();
  const uint32_t pid = pod.GetStatus()->pid();
  const Box& box = Member(pod);
  node().KillEngine();
  ASSERT_OK(box.Create());
  node().KillEngine();
  ASSERT_OK(box.Start());
  node().KillEngine();
  EXPECT_EQ(pod.GetStatus()->pid(), pid);
  EXPECT_EQ(box.State()->status(), pb::RUNNING);
  EXPECT_OK(box.Kill(SIGKILL));
  EXPECT_EQ(box.Wait()->exit_status(), 137U);
}

TEST_P(PodContract, OutlivesTheEngineDuringCreate) {
  AtEachMoment([this](size_t moment) {
    const PodBox& pod = AnnouncedPod("-" + std::to_string(moment));
    const auto created = CallAndKill<sandbox_pb::CreateSandboxResponse>(
        node(), pod.bundle(), pod.client(), "CreateSandbox", pod.CreateRequest(), moment);
    EXPECT_OK(created.answer);
    EXPECT_OK(pod.Start());
    EXPECT_EQ(pod.GetStatus()->state(), "SANDBOX_READY");
    return created.in_time;
  });
}

TEST_P(PodContract, OutlivesTheEngineDuringStart) {
  AtEachMoment([this](size_t moment) {
    const PodBox& pod = AnnouncedPod("-" + std::to_string(moment));
    EXPECT_OK(pod.Create());
    sandbox_pb::StartSandboxRequest request;
    request.set_sandbox_id(pod.id());
    const auto started = CallAndKill<sandbox_pb::StartSandboxResponse>(
        node(), pod.bundle(), pod.client(), "StartSandbox", request, moment);
    EXPECT_OK(started.answer);
    const auto status = pod.GetStatus();
    EXPECT_EQ(status->state(), "SANDBOX_READY");
    EXPECT_EQ(started.answer->pid(), status->pid());
    EXPECT_EQ(kill(static_cast<pid_t>(status->pid()), 0), 0);
    return started.in_time;
  });
}

TEST_P(PodContract, OutlivesTheEngineDuringShutdown) {
  AtEachMoment([this](size_t moment) {
    const PodBox& pod = RunningPod("-" + std::to_string(moment));
    sandbox_pb::ShutdownSandboxRequest request;
    request.set_sandbox_id(pod.id());
    const auto ended = CallAndKill<sandbox_pb::ShutdownSandboxResponse>(
        node(), pod.bundle(), pod.client(), "ShutdownSandbox", request, moment);
    EXPECT_OK(ended.answer);
    EXPECT_CODE(pod.GetStatus(), kNotFound);
    return ended.in_time;
  });
}

}  // namespace
}  // namespace gantry::contract
