// SPDX-License-Identifier: Apache-2.0
//
// kill -9 of the keeper below pods of both kinds: one whose containers have terminals and
// processes that were started later, and that ignore all that they can.
#include <signal.h>

#include "tests/harness/cri_pod.h"

namespace gantry::e2e {
namespace {

class KeeperKillPod : public CriPodTest {
 protected:
  void SetUp() override {
    CriPodTest::SetUp();
    if (!IsSkipped() && !HasFatalFailure() && settings().stock()) {
      GTEST_SKIP() << "the stock shim is one for each pod";
    }
  }

  void Kill() {
    const pid_t keeper = node().Keeper().pid;
    ASSERT_GT(keeper, 0);
    kill(keeper, SIGKILL);
    ASSERT_TRUE(WaitGone(keeper));
    AwaitController();
  }

  static Words Stubborn(const std::string& up) {
    return {"sh", "-c", "trap '' HUP TERM PIPE; echo " + up + "; while :; do sleep 0.1; done"};
  }

  static bool IsEmpty(const PodConfig& config) {
    return ProcessesInCgroup(config.cgroup_parent.substr(1)).empty();
  }
};

INSTANTIATE_TEST_SUITE_P(Sandboxer, KeeperKillPod, kSandboxers, SandboxerName);

TEST_P(KeeperKillPod, EndsTerminalsAndExecs) {
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  ContainerConfig container;
  container.name = "terminal";
  container.command = Stubborn("up");
  container.terminal = true;
  const std::string terminal = RunContainerIn(pod, config, container);
  const std::string piped = RunContainerIn(pod, config, "piped", Stubborn("up"));
  auto exec = OpenExec(piped, Stubborn("exec-up"));
  auto exec_terminal = OpenExec(terminal, Stubborn("exec-up"), true);
  ASSERT_TRUE(exec && exec_terminal);
  ASSERT_TRUE(exec->ReadUntil("exec-up"));
  ASSERT_TRUE(exec_terminal->ReadUntil("exec-up"));
  Kill();
  EXPECT_NE(exec->Wait(), 0) << exec->status();
  EXPECT_NE(exec_terminal->Wait(), 0) << exec_terminal->status();
  for (const std::string& id : {terminal, piped}) {
    const cri::ContainerStatus status = WaitForEnd(id);
    // containerd's own: nobody can tell it.
    EXPECT_EQ(status.exit_code(), 255) << id;
  }
  EXPECT_TRUE(Eventually([&] { return IsEmpty(config); }));
  // containerd's connection to the controller is one that was refused, and is tried again.
  auto ended = cri().PodStatus(pod);
  Eventually([&] { return (ended = cri().PodStatus(pod)).has_value(); });
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->status().state(), cri::SANDBOX_NOTREADY);
  ASSERT_NO_FATAL_FAILURE(RemovePods());
  ASSERT_NO_FATAL_FAILURE(ExpectNoBundles());
}

TEST_P(KeeperKillPod, LetsAPodOfTheSameNameRun) {
  const PodConfig config = Pod();
  const std::string first = RunPod(config);
  RunContainerIn(first, config, "one", Stubborn("up"));
  Kill();
  ASSERT_NO_FATAL_FAILURE(RemovePods());
  const std::string id = RunContainerIn(RunPod(config), config, "one", {"sleep", "1000"});
  EXPECT_EQ(Exec(id, {"sh", "-c", "exit 4"}).exit_code, 4);
}

}  // namespace
}  // namespace gantry::e2e
