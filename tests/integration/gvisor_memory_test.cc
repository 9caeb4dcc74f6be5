// SPDX-License-Identifier: Apache-2.0
//
// Memory that runs out in a pod: the kernel ends its sentry, which is each of its containers,
// and for each of them a kubelet is to read "OOMKilled".
#include <signal.h>

#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>

#include "tests/harness/cri_pod.h"
#include "tests/harness/events.h"

namespace gantry::e2e {
namespace {

constexpr int64_t kPodLimit = 200 << 20;
/// More than that, in the memory of one process.
constexpr const char* kHog =
    R"(awk 'BEGIN { x = sprintf("%400000000s", "x"); print length(x); system("sleep 1000") }')";

class GvisorMemory : public CriPodTest {
 protected:
  void SetUp() override {
    if (!settings().gvisor()) {
      GTEST_SKIP() << "is about the gvisor backend";
    }
    CriPodTest::SetUp();
    if (!IsSkipped()) {
      config_ = Pod();
      WriteText(MemoryLimitFile(config_.cgroup_parent), std::to_string(kPodLimit));
      pod_ = RunPod(config_);
    }
  }

  std::string RunScript(const std::string& name, const std::string& script) {
    return RunContainerIn(pod_, config_, name, {"sh", "-c", script});
  }

  void ExpectOutOfMemory(const std::string& id) {
    const cri::ContainerStatus status = WaitForEnd(id);
    EXPECT_EQ(status.exit_code(), 137);
    EXPECT_EQ(status.reason(), "OOMKilled");
  }

  /// In that order, and the end once.
  static void ExpectTold(Events& events, const std::string& id) {
    const auto topics = Events::Topics(events.Until("/tasks/exit", id, id));
    const auto oom = std::ranges::find(topics, "oom");
    EXPECT_LT(oom, std::ranges::find(topics, "exit")) << ::testing::PrintToString(topics);
    EXPECT_EQ(std::ranges::count(topics, "exit"), 1) << ::testing::PrintToString(topics);
  }

  static std::string ScoreOf(pid_t pid) {
    return ReadText("/proc/" + std::to_string(pid) + "/oom_score_adj");
  }

  static pid_t GoferOf(const std::string& id) {
    const auto found = Processes([&](const HostProcess& process) {
      return process.name == "runsc-gofer" &&
             process.command.find("/" + id + " ") != std::string::npos;
    });
    EXPECT_EQ(found.size(), 1U) << Describe(found);
    return found.empty() ? 0 : found[0].pid;
  }

  PodConfig config_;
  std::string pod_;
};

INSTANTIATE_TEST_SUITE_P(Sandboxer, GvisorMemory, kSandboxers, SandboxerName);

TEST_P(GvisorMemory, EndsEachContainerAndSaysSo) {
  Events events(node());
  const std::string other = RunScript("other", "sleep 1000");
  const std::string hog = RunScript("hog", kHog);
  for (const std::string& id : {other, hog}) {
    ExpectOutOfMemory(id);
    ExpectTold(events, id);
  }
}

TEST_P(GvisorMemory, InAnExecEndsItToo) {
  const std::string id = RunScript("one", "sleep 1000");
  EXPECT_NE(Exec(id, {"sh", "-c", kHog}).exit_code, 0);
  ExpectOutOfMemory(id);
}

TEST_P(GvisorMemory, IsToldThatCameWithoutAnEngine) {
  const std::string volume = settings().root + "/volume-" + Id();
  std::filesystem::create_directories(volume);
  ContainerConfig container;
  container.name = "hog";
  container.command = {"sh", "-c",
                       std::string("until [ -e /volume/go ]; do sleep 0.05; done; ") + kHog};
  container.mounts.emplace_back();
  container.mounts.back().set_container_path("/volume");
  container.mounts.back().set_host_path(volume);
  const std::string other = RunScript("other", "sleep 1000");
  const std::string hog = RunContainerIn(pod_, config_, container);
  const pid_t sentry = PidOf(hog);
  const HostProcess engine = node().Engine();
  ASSERT_NE(engine.pid, 0);
  ASSERT_NE(sentry, 0);
  kill(engine.pid, SIGSTOP);
  WriteText(volume + "/go", "");
  EXPECT_TRUE(WaitGone(sentry));
  kill(engine.pid, SIGKILL);
  ExpectOutOfMemory(hog);
  ExpectOutOfMemory(other);
}

TEST_P(GvisorMemory, OfTheNodeIsTakenFromTheSentryAsFromItsContainers) {
  ContainerConfig first;
  first.name = "first";
  first.command = {"sleep", "1000"};
  first.oom_score_adj = 700;
  ContainerConfig second = first;
  second.name = "second";
  second.oom_score_adj = 300;
  const std::string one = RunContainerIn(pod_, config_, first);
  const pid_t sentry = PidOf(one);
  EXPECT_EQ(ScoreOf(sentry), "700\n") << "not the pause container's";
  const std::string two = RunContainerIn(pod_, config_, second);
  EXPECT_EQ(ScoreOf(sentry), "300\n") << "the lowest";
  EXPECT_EQ(ScoreOf(GoferOf(one)), "700\n");
  EXPECT_EQ(ScoreOf(GoferOf(two)), "300\n");
  ASSERT_TRUE(cri().Stop(two, std::chrono::seconds(0)));
  ASSERT_TRUE(cri().Remove(two));
  EXPECT_EQ(ScoreOf(sentry), "700\n");
}

TEST_P(GvisorMemory, IsNotWhatAKilledSentryEndsBy) {
  const std::string id = RunScript("one", "sleep 1000");
  kill(PidOf(id), SIGKILL);
  const cri::ContainerStatus status = WaitForEnd(id);
  EXPECT_EQ(status.exit_code(), 137);
  EXPECT_EQ(status.reason(), "Error");
}

}  // namespace
}  // namespace gantry::e2e
