// SPDX-License-Identifier: Apache-2.0
//
// Pods without a pause container: what is different about them.
#include <signal.h>

#include <algorithm>

#include "tests/harness/cri_test.h"
#include "tests/harness/vmm_test.h"

namespace gantry::e2e {
namespace {

class CriShimPod : public CriTest {
 protected:
  void SetUp() override {
    if (settings().stock()) {
      GTEST_SKIP() << "the stock shim makes no pods";
    }
    if (!settings().sandbox_api()) {
      GTEST_SKIP() << settings().no_sandbox_api();
    }
    CriTest::SetUp();
  }

  std::string handler() const override { return "gantry-shim"; }

  /// The processes of this run that hold namespaces, or are the pod's kernel.
  std::vector<HostProcess> Holders() {
    std::vector<HostProcess> holders = ProcessesInCgroup(settings().ns);
    std::erase_if(holders, [this](const HostProcess& one) {
      if (settings().vmm()) {
        return !one.command.contains(kQemu);
      }
      return settings().gvisor() ? !one.command.starts_with("runsc-sandbox ")
                                 : one.name != "gantry-pause";
    });
    return holders;
  }
};

TEST_F(CriShimPod, NeedsNoPauseContainer) {
  const PodConfig config = Pod();
  RunPod(config);
  EXPECT_EQ(Holders().size(), 1U);
  EXPECT_EQ(node().Ctr({"-n", "k8s.io", "tasks", "ls", "-q"}).out, "")
      << "no task but of containers";
}

TEST_F(CriShimPod, IsNotReadyWithoutItsHolder) {
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  const std::string id = RunContainerIn(pod, config, "one", {"sleep", "1000"});
  const auto holders = Holders();
  ASSERT_EQ(holders.size(), 1U);
  kill(holders[0].pid, SIGKILL);
  EXPECT_TRUE(
      Eventually([&] { return cri().PodStatus(pod)->status().state() == cri::SANDBOX_NOTREADY; }));
  EXPECT_EQ(WaitForEnd(id).exit_code(), 137) << "nothing holds its namespaces any more";
}

TEST_F(CriShimPod, KeepsItsHolderOverTheEngine) {
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  const auto before = Holders();
  ASSERT_EQ(before.size(), 1U);
  const pid_t engine = node().Engine().pid;
  kill(engine, SIGKILL);
  ASSERT_TRUE(WaitGone(engine));
  const std::string id = RunContainerIn(pod, config, "one", {"sleep", "1000"});
  EXPECT_EQ(StatusOf(id).state(), cri::CONTAINER_RUNNING);
  ASSERT_EQ(Holders().size(), 1U);
  EXPECT_EQ(Holders()[0].pid, before[0].pid);
}

TEST_F(CriShimPod, SharesItsPidNamespaceWithNobody) {
  PodConfig config = Pod();
  config.pid = cri::POD;
  const std::string pod = RunPod(config);
  ContainerConfig container;
  container.name = "one";
  container.command = {"sleep", "1000"};
  container.capabilities = {"SYS_PTRACE"};
  const std::string id = RunContainerIn(pod, config, container);
  EXPECT_EQ(Exec(id, {"cat", "/proc/1/comm"}).out, "gantry-pause\n");
  const ExecResult root = Exec(id, {"ls", "-A", "/proc/1/root/"});
  EXPECT_EQ(root.out, "") << "the node's files";
  EXPECT_NE(Exec(id, {"cat", "/proc/1/root/proc/cmdline"}).exit_code, 0);
  EXPECT_EQ(Exec(id, {"sh", "-c", "grep Cap /proc/1/status | grep -vc 0000000000000000"}).out,
            "0\n");
  EXPECT_EQ(Exec(id, {"sh", "-c", "grep -c '^Uid:.65535.65535.65535.65535' /proc/1/status"}).out,
            "1\n");
}

TEST_F(CriShimPod, StandsBesideOnesWithAPauseContainer) {
  PodConfig other = Pod("-other");
  other.runtime_handler = "gantry";
  const PodConfig config = Pod();
  const std::string with_pause = RunPod(other);
  const std::string without = RunPod(config);
  const std::string first = RunContainerIn(with_pause, other, "one", {"sleep", "1000"});
  const std::string second = RunContainerIn(without, config, "one", {"sleep", "1000"});
  EXPECT_TRUE(cri().StopPod(with_pause));
  EXPECT_TRUE(cri().RemovePod(with_pause));
  EXPECT_EQ(StatusOf(second).state(), cri::CONTAINER_RUNNING);
  EXPECT_EQ(Exec(second, {"sh", "-c", "exit 4"}).exit_code, 4);
}

TEST_F(CriShimPod, ThatCannotBeLeavesNothing) {
  PodConfig config = Pod();
  config.sysctls = {{"vm.swappiness", "1"}};
  const auto refused = cri().RunPod(config);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("vm.swappiness"), std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(Holders().empty());
}

TEST_F(CriShimPod, KilledTheEngineWhileItIsMade) {
  for (int i = 0; i < 10; ++i) {
    const PodConfig config = Pod("-" + std::to_string(i));
    const pid_t engine = node().Engine().pid;
    if (engine > 0) {
      kill(engine, SIGKILL);
    }
    const std::string pod = RunPod(config);
    const std::string id = RunContainerIn(pod, config, "one", {"true"});
    EXPECT_EQ(WaitForEnd(id).exit_code(), 0);
  }
}

}  // namespace
}  // namespace gantry::e2e
