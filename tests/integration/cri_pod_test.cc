// SPDX-License-Identifier: Apache-2.0
//
// Pods through containerd's CRI, what a kubelet does: with a pause container, and
// without one by `sandboxer = "shim"`.

#include "tests/harness/cri_pod.h"

#include <signal.h>

#include <algorithm>
#include <thread>

#include "tests/harness/take_memory.h"

namespace gantry::e2e {
namespace {

const Words kEndsWith7{"sh", "-c", "trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done"};

class CriPod : public CriPodTest {};

INSTANTIATE_TEST_SUITE_P(Sandboxer, CriPod, kSandboxers, SandboxerName);

TEST_P(CriPod, IsReadyAndGoesAway) {
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  const auto status = cri().PodStatus(pod);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(status->status().state(), cri::SANDBOX_READY);
  EXPECT_TRUE(cri().StopPod(pod));
  EXPECT_EQ(cri().PodStatus(pod)->status().state(), cri::SANDBOX_NOTREADY);
  EXPECT_TRUE(cri().RemovePod(pod));
}

TEST_P(CriPod, OfTwoRunsAndExecsApart) {
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  const std::string first = RunContainerIn(pod, config, "first", {"sleep", "1001"});
  const std::string second = RunContainerIn(pod, config, "second", {"sleep", "1002"});
  EXPECT_NE(Exec(first, {"ps"}).out.find("sleep 1001"), std::string::npos);
  EXPECT_NE(Exec(second, {"ps"}).out.find("sleep 1002"), std::string::npos);
  const ExecResult result = Exec(second, {"sh", "-c", "echo out; echo err >&2; exit 3"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.out, "out\n");
  EXPECT_EQ(result.err, "err\n");
}

TEST_P(CriPod, SharesItsHostNameAndIpc) {
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  const std::string first = RunContainerIn(pod, config, "first", {"sleep", "1000"});
  const std::string second = RunContainerIn(pod, config, "second", {"sleep", "1000"});
  EXPECT_EQ(Exec(first, {"readlink", "/proc/self/ns/ipc"}).out,
            Exec(second, {"readlink", "/proc/self/ns/ipc"}).out);
  EXPECT_NE(Exec(first, {"readlink", "/proc/self/ns/mnt"}).out,
            Exec(second, {"readlink", "/proc/self/ns/mnt"}).out);
}

TEST_P(CriPod, WritesLogs) {
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  const std::string id =
      RunContainerIn(pod, config, "talker", {"sh", "-c", "echo said; echo cried >&2"});
  WaitForEnd(id);
  const std::string path = config.log_directory + "/talker.log";
  EXPECT_TRUE(WaitForText(path, "stdout F said\n")) << ReadText(path);
  EXPECT_TRUE(WaitForText(path, "stderr F cried\n")) << ReadText(path);
}

TEST_P(CriPod, MeasuresItsContainers) {
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  const std::string id = RunContainerIn(pod, config, "one", {"sleep", "1000"});
  const auto stats = cri().Stats(id);
  ASSERT_TRUE(stats) << stats.error().message;
  EXPECT_GT(stats->cpu().usage_core_nano_seconds().value(), 0U);
  EXPECT_GT(stats->memory().working_set_bytes().value(), 0U);
}

TEST_P(CriPod, ChangesAMemoryLimit) {
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  const std::string id = RunContainerIn(pod, config, "one", {"sleep", "1000"}, 64 << 20);
  const Status updated = cri().UpdateMemory(id, 48 << 20);
  ASSERT_TRUE(updated) << updated.error().message;
  std::string limits;
  if (settings().vmm()) {  // They hold in the guest.
    limits = Exec(id, {"cat", "/sys/fs/cgroup/memory.max"}).out;
  }
  for (const std::string& folder : CgroupFolders(config.cgroup_parent + "/" + id)) {
    limits += ReadText(folder + "/memory.limit_in_bytes") + ReadText(folder + "/memory.max");
  }
  EXPECT_NE(limits.find(std::to_string(48 << 20)), std::string::npos) << limits;
}

TEST_P(CriPod, StopsAContainerWithGrace) {
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  const std::string id = RunContainerIn(pod, config, "one", kEndsWith7);
  ASSERT_TRUE(WaitForText(config.log_directory + "/one.log", "ready"));
  const Status stopped = cri().Stop(id, std::chrono::seconds(20));
  EXPECT_TRUE(stopped) << stopped.error().message;
  const cri::ContainerStatus status = StatusOf(id);
  EXPECT_EQ(status.state(), cri::CONTAINER_EXITED);
  EXPECT_EQ(status.exit_code(), 7);
  EXPECT_EQ(status.reason(), "Error");
}

TEST_P(CriPod, KillsAContainerAfterItsGrace) {
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  const std::string id =
      RunContainerIn(pod, config, "one", {"sh", "-c", "trap '' TERM; echo ready; sleep 1000"});
  ASSERT_TRUE(WaitForText(config.log_directory + "/one.log", "ready"));
  const Status stopped = cri().Stop(id, std::chrono::seconds(1));
  EXPECT_TRUE(stopped) << stopped.error().message;
  EXPECT_EQ(StatusOf(id).exit_code(), 137);
}

TEST_P(CriPod, TellsHowAContainerEnded) {
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  const cri::ContainerStatus good = WaitForEnd(RunContainerIn(pod, config, "good", {"true"}));
  EXPECT_EQ(good.exit_code(), 0);
  EXPECT_EQ(good.reason(), "Completed");
  EXPECT_GT(good.finished_at(), good.created_at());
  const cri::ContainerStatus bad =
      WaitForEnd(RunContainerIn(pod, config, "bad", {"sh", "-c", "exit 9"}));
  EXPECT_EQ(bad.exit_code(), 9);
  EXPECT_EQ(bad.reason(), "Error");
}

TEST_P(CriPod, TellsThatMemoryRanOut) {
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  const cri::ContainerStatus status =
      WaitForEnd(RunContainerIn(pod, config, "hog", TakeMemory(90'000'000), 24 << 20));
  EXPECT_EQ(status.exit_code(), 137);
  EXPECT_EQ(status.reason(), "OOMKilled");
}

TEST_P(CriPod, RefusesAMissingProgram) {
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  ContainerConfig container;
  container.name = "none";
  container.command = {"/no/such/program"};
  const auto id = cri().Create(pod, config, container);
  ASSERT_TRUE(id) << id.error().message;
  const Status started = cri().Start(*id);
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().message.find("/no/such/program"), std::string::npos)
      << started.error().message;
  EXPECT_EQ(StatusOf(*id).state(), cri::CONTAINER_EXITED);
}

TEST_P(CriPod, OutlivesARestartOfContainerd) {
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  const std::string id = RunContainerIn(pod, config, "one", kEndsWith7);
  ASSERT_TRUE(WaitForText(config.log_directory + "/one.log", "ready"));
  ASSERT_EQ(node().RestartContainerd(), "");
  ASSERT_NO_FATAL_FAILURE(Connect());
  EXPECT_EQ(cri().PodStatus(pod)->status().state(), cri::SANDBOX_READY);
  EXPECT_EQ(StatusOf(id).state(), cri::CONTAINER_RUNNING);
  EXPECT_EQ(Exec(id, {"sh", "-c", "exit 4"}).exit_code, 4);
  EXPECT_TRUE(cri().Stop(id, std::chrono::seconds(20)));
  EXPECT_EQ(StatusOf(id).exit_code(), 7);
}

TEST_P(CriPod, KeepsTheExitCodeOfWhatEndedWithoutContainerd) {
  if (settings().stock()) {
    GTEST_SKIP() << "the stock shim loses it: containerd takes its empty answer for a leak";
  }
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  const std::string id = RunContainerIn(pod, config, "one", kEndsWith7);
  ASSERT_TRUE(WaitForText(config.log_directory + "/one.log", "ready"));
  const pid_t pid = PidOf(id);
  ASSERT_GT(pid, 0);
  node().KillContainerd();
  kill(pid, SIGTERM);
  ASSERT_TRUE(WaitGone(pid));
  ASSERT_EQ(node().StartContainerd(), "");
  ASSERT_NO_FATAL_FAILURE(Connect());
  const cri::ContainerStatus status = WaitForEnd(id);
  EXPECT_EQ(status.exit_code(), 7);
  EXPECT_EQ(status.reason(), "Error");
}

TEST_P(CriPod, OutlivesTheEngine) {
  if (settings().stock()) {
    GTEST_SKIP() << "the stock runtime has no engine";
  }
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  const std::string id = RunContainerIn(pod, config, "one", kEndsWith7);
  ASSERT_TRUE(WaitForText(config.log_directory + "/one.log", "ready"));
  const pid_t engine = node().Engine().pid;
  ASSERT_GT(engine, 0);
  kill(engine, SIGKILL);
  ASSERT_TRUE(WaitGone(engine));
  EXPECT_EQ(Exec(id, {"sh", "-c", "exit 4"}).exit_code, 4);
  const std::string second = RunContainerIn(pod, config, "two", {"sleep", "1000"});
  EXPECT_EQ(StatusOf(second).state(), cri::CONTAINER_RUNNING);
  EXPECT_TRUE(cri().Stop(id, std::chrono::seconds(20)));
  EXPECT_EQ(StatusOf(id).exit_code(), 7);
}

TEST_P(CriPod, RunsFiftyContainersAtOnce) {
  constexpr int kPods = 5;
  constexpr int kInEach = 10;
  std::vector<std::thread> threads;
  std::vector<std::string> problems(kPods);
  for (int i = 0; i < kPods; ++i) {
    threads.emplace_back([&, config = Pod("-" + std::to_string(i)), i] {
      const auto pod = cri().RunPod(config);
      std::string& problem = problems[static_cast<size_t>(i)];
      problem = pod ? "" : pod.error().message;
      for (int j = 0; j < kInEach && problem.empty(); ++j) {
        ContainerConfig container;
        container.name = "c" + std::to_string(j);
        container.command = {"sleep", "1000"};
        const auto id = cri().Create(*pod, config, container);
        const Status started = id ? cri().Start(*id) : Status(std::unexpected(id.error()));
        const auto exec = started ? cri().Exec(*id, {"sh", "-c", "echo $((40+2))"})
                                  : Result<ExecResult>(std::unexpected(started.error()));
        problem = !exec ? exec.error().message : exec->out == "42\n" ? "" : "got " + exec->out;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const std::string& problem : problems) {
    EXPECT_EQ(problem, "");
  }
  const auto containers = cri().Containers();
  ASSERT_TRUE(containers) << containers.error().message;
  EXPECT_EQ(std::ranges::count(*containers, cri::CONTAINER_RUNNING, &cri::Container::state),
            kPods * kInEach);
}

}  // namespace
}  // namespace gantry::e2e
