// SPDX-License-Identifier: Apache-2.0
//
// Handlers of two backends in one containerd, chosen by a link to the shim and by an
// option, with both sandboxers: each pod is its backend's, and one daemon has all.
#include <signal.h>

#include <algorithm>

#include "tests/harness/cri_test.h"

namespace gantry::e2e {
namespace {

class CriHandlers : public CriTest {
 protected:
  struct OnePod {
    std::string handler;
    std::string backend;
    PodConfig config;
    std::string pod;
    std::string container;
  };

  void SetUp() override {
    if (!settings().two_backends) {
      GTEST_SKIP() << (settings().stock()    ? "the stock runtime has no backends"
                       : settings().remote() ? "this run is of the fake remote backend alone"
                       : settings().gvisor() ? "this run is of the gvisor backend alone"
                                             : "not built: " + settings().remote_plugin);
    }
    CriTest::SetUp();
  }

  OnePod Run(const std::string& runtime, const std::string& backend) {
    OnePod one{runtime, backend, Pod("-" + runtime), "", ""};
    one.config.runtime_handler = runtime;
    one.pod = RunPod(one.config);
    one.container = RunContainerIn(one.pod, one.config, "one", {"sleep", "1000"});
    return one;
  }

  std::string Inspect(const std::string& id) {
    return RunProgram({"env", "GANTRY_RUN_DIR=" + settings().run_dir,
                       settings().gantry_bin + "/gantryctl", "inspect", id, "--namespace", "k8s.io",
                       "--json"})
        .Text();
  }

  void ExpectRunning(const OnePod& one) {
    EXPECT_EQ(cri().PodStatus(one.pod)->status().state(), cri::SANDBOX_READY) << one.handler;
    EXPECT_EQ(Exec(one.container, {"sh", "-c", "exit 4"}).exit_code, 4) << one.handler;
    for (const std::string& id : {one.pod, one.container}) {
      const std::string said = Inspect(id);
      EXPECT_NE(said.find("\"backend\": \"" + one.backend + "\""), std::string::npos)
          << one.handler << ": " << said;
    }
  }

  /// Of this run.
  size_t Count(const std::string& program) {
    return static_cast<size_t>(std::ranges::count(
        ProcessesWithEnv("GANTRY_RUN_DIR=" + settings().run_dir), program, &HostProcess::name));
  }

  void ExpectOneDaemon() {
    EXPECT_EQ(Count("gantry-keeper"), 1U);
    EXPECT_EQ(Count("gantryd"), 1U);
  }

  /// A container that says to be of the pod, executed by the other backend's link.
  Output RunStranger(const std::string& pod, const std::string& runtime) {
    return node().Ctr({"-n", "k8s.io", "run", "-d", "--runtime", runtime, "--fifo-dir",
                       node().fifo_dir(), "--annotation", "io.kubernetes.cri.sandbox-id=" + pod,
                       kImage, Id("-stranger"), "sleep", "1000"});
  }
};

TEST_F(CriHandlers, StandBesideEachOther) {
  const std::vector<OnePod> pods{Run("gantry", "runc"), Run("gantry-remote", "remote"),
                                 Run("gantry-asked", "remote")};
  for (const OnePod& one : pods) {
    ExpectRunning(one);
  }
  ExpectOneDaemon();
  EXPECT_TRUE(cri().StopPod(pods[1].pod));
  EXPECT_TRUE(cri().RemovePod(pods[1].pod));
  ExpectRunning(pods[0]);
  ExpectRunning(pods[2]);
}

TEST_F(CriHandlers, OfBothSandboxersStandBesideEachOther) {
  if (!settings().sandbox_api()) {
    GTEST_SKIP() << settings().no_sandbox_api();
  }
  const std::vector<OnePod> pods{Run("gantry", "runc"), Run("gantry-shim", "runc"),
                                 Run("gantry-remote", "remote"),
                                 Run("gantry-remote-shim", "remote")};
  ExpectOneDaemon();
  const pid_t engine = node().Engine().pid;
  kill(engine, SIGKILL);
  ASSERT_TRUE(WaitGone(engine));
  for (const OnePod& one : pods) {
    ExpectRunning(one);
  }
  ASSERT_EQ(node().RestartContainerd(), "");
  ASSERT_NO_FATAL_FAILURE(Connect());
  for (const OnePod& one : pods) {
    ExpectRunning(one);
  }
  ExpectOneDaemon();
}

TEST_F(CriHandlers, AContainerOfAnotherIsRefused) {
  const OnePod one = Run("gantry", "runc");
  const OnePod other = Run("gantry-remote", "remote");
  const Output in_runc = RunStranger(one.pod, "io.containerd.gantry-remote.v1");
  EXPECT_NE(in_runc.status, 0);
  EXPECT_NE(in_runc.err.find("it is for handler 'remote'"), std::string::npos) << in_runc.Text();
  node().Ctr({"-n", "k8s.io", "containers", "rm", Id("-stranger")});
  ExpectRunning(one);
  ExpectRunning(other);
}

TEST_F(CriHandlers, AContainerOfAnotherIsRefusedInAPodOfTheShim) {
  if (!settings().sandbox_api()) {
    GTEST_SKIP() << settings().no_sandbox_api();
  }
  const OnePod one = Run("gantry-shim", "runc");
  const Output refused = RunStranger(one.pod, "io.containerd.gantry-remote.v1");
  EXPECT_NE(refused.status, 0);
  EXPECT_NE(refused.err.find("it is for handler 'remote'"), std::string::npos) << refused.Text();
  node().Ctr({"-n", "k8s.io", "containers", "rm", Id("-stranger")});
  ExpectRunning(one);
}

}  // namespace
}  // namespace gantry::e2e
