// SPDX-License-Identifier: Apache-2.0
//
// Pods without a pause container: the Sandbox service before the real keeper and
// engine, and kill -9 of the engine at every step.
#include <signal.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include <gmock/gmock.h>

#include "tests/contract/harness/interrupt.h"
#include "tests/contract/harness/pod_contract.h"
#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

INSTANTIATE_CONTRACT(PodContract);

/// As the kubelet does it with a pod's.
bool RemoveCgroup(const std::string& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_directory() && !RemoveCgroup(entry.path())) {
      return false;
    }
  }
  return rmdir(folder.c_str()) == 0;
}

TEST_P(PodContract, LivesAndEnds) {
  PodBox& pod = AnnouncedPod();
  ASSERT_OK(pod.Create());
  const auto started = pod.Start();
  ASSERT_OK(started);
  EXPECT_TRUE(Signal(static_cast<pid_t>(started->pid()), 0)) << "CRI wants a live process";
  const auto ready = Got(pod.GetStatus());
  EXPECT_EQ(ready.state(), "SANDBOX_READY");
  EXPECT_EQ(ready.pid(), started->pid());
  EXPECT_OK(pod.Platform());
  EXPECT_OK(pod.Metrics());
  ASSERT_OK(pod.Stop());
  EXPECT_OK(pod.Wait());
  EXPECT_EQ(Got(pod.GetStatus()).state(), "SANDBOX_NOTREADY");
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
  EXPECT_EQ(Got(first.Wait()).exit_status(), 3U);
  EXPECT_EQ(Got(first.Delete()).exit_status(), 3U);
  EXPECT_THAT(node().containerd().WaitForTopics(first.id(), 4),
              ElementsAre("create", "start", "exit", "delete"));
  EXPECT_EQ(Got(second.State()).status(), pb::RUNNING);
  EXPECT_EQ(Got(pod.GetStatus()).state(), "SANDBOX_READY");
}

/// Of backends whose pods have files of the host.
class PodFilesContract : public PodContract {
 protected:
  void SetUp() override {
    PodContract::SetUp();
    if (!IsSkipped() && !IsSupported(backend(), "pod files")) {
      GTEST_SKIP() << "its pods have no files of the host";
    }
  }
};

INSTANTIATE_CONTRACT(PodFilesContract);

TEST_P(PodFilesContract, CannotFillTheNodesMemory) {
  const PodBox& pod = RunningPod();
  const Box& box = Member(
      pod, {.args = {"sh", "-c", "dd if=/dev/zero bs=65536 count=128 >>/etc/hosts 2>/dev/null"}});
  ASSERT_OK(box.Create());
  ASSERT_OK(box.Start());
  EXPECT_NE(Got(box.Wait()).exit_status(), 0U) << "8 MiB have room in it";
  struct statvfs size = {};
  ASSERT_EQ(statvfs((pod.bundle() + "/files/hosts").c_str(), &size), 0);
  EXPECT_EQ(size.f_blocks * size.f_frsize, size_t{1} << 20);
  EXPECT_EQ(size.f_bavail, 0U) << "nothing was written";
}

TEST_P(PodFilesContract, AreNotLeftMountedWhereTheEngineHangs) {
  const PodBox& pod = RunningPod();
  EXPECT_THAT(e2e::MountsBelow(pod.bundle()),
              UnorderedElementsAre(pod.bundle() + "/files", pod.bundle() + "/shm"));
  const pid_t engine = node().Engine();
  EXPECT_TRUE(Signal(engine, SIGSTOP));
  EXPECT_OK(node().ShimDelete(pod.id(), pod.bundle()));
  EXPECT_THAT(e2e::MountsBelow(pod.bundle()), IsEmpty());
  // As containerd does.
  std::filesystem::remove_all(pod.bundle());
  EXPECT_TRUE(Signal(engine, SIGCONT));
}

TEST_P(PodFilesContract, AreNotLeftMountedWhereContainerdDeletesTheBundleFirst) {
  const PodBox& pod = RunningPod();
  const std::filesystem::path bundle(pod.bundle());
  const std::filesystem::path hidden = bundle.parent_path() / ("." + bundle.filename().string());
  std::filesystem::rename(bundle, hidden);
  EXPECT_THAT(e2e::MountsBelow(hidden.string()), SizeIs(2));
  EXPECT_OK(pod.Shutdown());
  EXPECT_THAT(e2e::MountsBelow(hidden.string()), IsEmpty());
  std::filesystem::remove_all(hidden);
}

TEST_P(PodFilesContract, AreNotLeftMountedWhereTheEngineDiesWhileContainerdDeletesTheBundle) {
  const PodBox& pod = RunningPod();
  const std::filesystem::path bundle(pod.bundle());
  const std::filesystem::path hidden = bundle.parent_path() / ("." + bundle.filename().string());
  std::filesystem::rename(bundle, hidden);
  EXPECT_THAT(e2e::MountsBelow(hidden.string()), SizeIs(2));
  // The next one finds no record of the pod.
  node().KillEngine();
  EXPECT_FALSE(pod.GetStatus());
  EXPECT_THAT(e2e::MountsBelow(hidden.string()), IsEmpty());
  std::filesystem::remove_all(hidden);
  // Its cgroup was on the record alone, and goes with its parent, as kubelet removes pods'.
  for (const std::string& folder : e2e::CgroupFolders("/" + pod.cgroup())) {
    EXPECT_TRUE(e2e::Eventually([&] { return RemoveCgroup(folder); })) << folder;
  }
}

TEST_P(PodContract, WhoseContainerCannotBeStartedGoesOn) {
  const PodBox& pod = RunningPod();
  const Box& other = Member(pod, {}, "-1");
  const Box& wrong = Member(pod, {.args = {"/no/such/program"}}, "-2");
  ASSERT_OK(other.Create());
  ASSERT_OK(other.Start());
  if (wrong.Create()) {
    // Who tries again must not end the pod.
    EXPECT_FALSE(wrong.Start());
    EXPECT_FALSE(wrong.Start());
    node().KillEngine();
    EXPECT_FALSE(wrong.Start());
    EXPECT_OK(wrong.Delete());
  }
  ASSERT_OK(other.Exec("x1", {"true"}));
  ASSERT_OK(other.Start("x1"));
  EXPECT_EQ(Got(other.Wait("x1")).exit_status(), 0U);
  EXPECT_EQ(Got(pod.GetStatus()).state(), "SANDBOX_READY");
}

TEST_P(PodContract, ThatEndsByItselfEndsItsContainers) {
  const PodBox& pod = RunningPod();
  const Box& box = Member(pod);
  ASSERT_OK(box.Create());
  ASSERT_OK(box.Start());
  const auto pid = static_cast<pid_t>(Got(pod.GetStatus()).pid());
  ASSERT_TRUE(Signal(pid, SIGKILL));
  EXPECT_EQ(Got(pod.Wait()).exit_status(), 137U);
  EXPECT_OK(box.Wait());
  EXPECT_EQ(Got(box.State()).status(), pb::STOPPED);
}

TEST_P(PodContract, IsEndedByTheShimsDelete) {
  PodBox& pod = RunningPod();
  const auto pid = static_cast<pid_t>(Got(pod.GetStatus()).pid());
  const auto deleted = node().ShimDelete(pod.id(), pod.bundle());
  ASSERT_OK(deleted);
  EXPECT_FALSE(Signal(pid, 0));
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
  const uint32_t pid = Got(pod.GetStatus()).pid();
  const Box& box = Member(pod);
  node().KillEngine();
  ASSERT_OK(box.Create());
  node().KillEngine();
  ASSERT_OK(box.Start());
  node().KillEngine();
  EXPECT_EQ(Got(pod.GetStatus()).pid(), pid);
  EXPECT_EQ(Got(box.State()).status(), pb::RUNNING);
  EXPECT_OK(box.Kill(SIGKILL));
  EXPECT_EQ(Got(box.Wait()).exit_status(), 137U);
}

TEST_P(PodContract, OutlivesTheEngineDuringCreate) {
  AtEachMoment([this](size_t moment) {
    const PodBox& pod = AnnouncedPod("-" + std::to_string(moment));
    const auto created = CallAndKill<sandbox_pb::CreateSandboxResponse>(
        node(), pod.bundle(), pod.client(), "CreateSandbox", pod.CreateRequest(), moment);
    EXPECT_OK(created.answer);
    EXPECT_OK(pod.Start());
    EXPECT_EQ(Got(pod.GetStatus()).state(), "SANDBOX_READY");
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
    const auto status = Got(pod.GetStatus());
    EXPECT_EQ(status.state(), "SANDBOX_READY");
    EXPECT_EQ(Got(started.answer).pid(), status.pid());
    EXPECT_TRUE(Signal(static_cast<pid_t>(status.pid()), 0));
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
