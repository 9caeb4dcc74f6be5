// SPDX-License-Identifier: Apache-2.0
//
// kill -9 of gantry-grpc, which containerd asks for its pods.
#include <signal.h>

#include "tests/harness/cri_pod.h"

namespace gantry::e2e {
namespace {

class CriController : public CriPodTest {
 protected:
  static pid_t GrpcProgram() {
    const auto found = ProcessesWithEnv("GANTRY_RUN_DIR=" + settings().run_dir);
    for (const HostProcess& process : found) {
      if (process.name == "gantry-grpc") {
        return process.pid;
      }
    }
    return 0;
  }

  /// Returns when another one runs.
  static void Kill() {
    const pid_t victim = GrpcProgram();
    ASSERT_GT(victim, 0);
    kill(victim, SIGKILL);
    ASSERT_TRUE(WaitGone(victim));
    ASSERT_TRUE(Eventually([] { return GrpcProgram() > 0; }));
  }
};

INSTANTIATE_TEST_SUITE_P(Sandboxer, CriController, testing::Values("controller"), SandboxerName);

TEST_P(CriController, MayBeKilled) {
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  const std::string id = RunContainerIn(pod, config, "one", {"sleep", "1000"});
  ASSERT_NO_FATAL_FAILURE(Kill());
  EXPECT_EQ(Exec(id, {"sh", "-c", "exit 4"}).exit_code, 4);
  // containerd connects anew in its own time.
  EXPECT_TRUE(Eventually([&] { return cri().RunPod(Pod("-other")).has_value(); }));
  EXPECT_EQ(StatusOf(id).state(), cri::CONTAINER_RUNNING);
  ASSERT_NO_FATAL_FAILURE(Kill());
  ASSERT_NO_FATAL_FAILURE(RemovePods());
  ASSERT_NO_FATAL_FAILURE(ExpectNoBundles());
}

TEST_P(CriController, TellsHowAPodEndedWhileItWasNotThere) {
  if (!settings().runc()) {
    GTEST_SKIP() << "the one process of a pod is gantry-pause with the runc backend alone";
  }
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  std::vector<pid_t> holders;
  for (const HostProcess& process : ProcessesInCgroup(config.cgroup_parent.substr(1))) {
    holders.push_back(process.pid);
  }
  ASSERT_EQ(holders.size(), 1U);
  const pid_t victim = GrpcProgram();
  ASSERT_GT(victim, 0);
  kill(victim, SIGKILL);
  kill(holders.front(), SIGKILL);
  EXPECT_TRUE(Eventually([&] {
    const auto status = cri().PodStatus(pod);
    return status && status->status().state() == cri::SANDBOX_NOTREADY;
  }));
}

}  // namespace
}  // namespace gantry::e2e
