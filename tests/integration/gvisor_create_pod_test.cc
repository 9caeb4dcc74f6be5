// SPDX-License-Identifier: Apache-2.0
//
// Pods with a build of runsc whose internal commands are of no use, with a pause container and
// without.
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/harness/changed_runsc.h"
#include "tests/harness/cri_pod.h"

namespace gantry::e2e {
namespace {

class GvisorCreatePod : public CriPodTest {
 protected:
  void SetUp() override {
    if (!settings().gvisor()) {
      GTEST_SKIP() << "is about the gvisor backend";
    }
    CriPodTest::SetUp();
    if (!IsSkipped()) {
      const std::string real = settings().RunscOf(settings().runsc_release);
      std::string configuration = GantryConfiguration(settings());
      configuration.replace(configuration.find(real), real.size(), ChangedRunsc(settings()).path());
      Restart(configuration);
    }
  }

  /// The node is as it was before the test.
  void TearDown() override {
    if (!IsSkipped()) {
      RemovePods();
      Restart(GantryConfiguration(settings()));
    }
    CriPodTest::TearDown();
  }

  void Restart(const std::string& configuration) {
    WriteText(settings().root + "/gantry.yaml", configuration);
    const Output restarted = RunProgram({"env", "GANTRY_RUN_DIR=" + settings().run_dir,
                                         settings().gantry_bin + "/gantryctl", "restart"});
    EXPECT_EQ(restarted.status, 0) << restarted.Text();
  }

  /// By a `runsc create` of the pod's.
  size_t Sentries(const std::string& pod) {
    return Processes([&](const HostProcess& process) {
             return process.command.starts_with("runsc-sandbox ") &&
                    process.command.find("/" + pod + "/runsc ") != std::string::npos;
           })
        .size();
  }
};

INSTANTIATE_TEST_SUITE_P(Sandboxer, GvisorCreatePod, kSandboxers, SandboxerName);

TEST_P(GvisorCreatePod, RunsTwoContainers) {
  PodConfig config = Pod();
  config.hostname = "web-0";
  const std::string pod = RunPod(config);
  EXPECT_EQ(Sentries(pod), 1U);
  const std::string first = RunContainerIn(pod, config, "first", {"sleep", "1001"});
  const std::string second = RunContainerIn(
      pod, config, "second", {"sh", "-c", "until [ -e /go ]; do sleep 0.05; done; exit 6"});
  EXPECT_EQ(Exec(first, {"hostname"}).out, "web-0\n");
  EXPECT_EQ(Exec(first, {"sh", "-c", "ip addr show lo | grep -c 127.0.0.1"}).out, "1\n");
  // How it ends itself says nothing: the container may have ended before it.
  Exec(second, {"touch", "/go"});
  EXPECT_EQ(WaitForEnd(second).exit_code(), 6);
  EXPECT_TRUE(cri().StopPod(pod));
  EXPECT_EQ(Sentries(pod), 0U);
}

TEST_P(GvisorCreatePod, GoesOnWithoutTheEngine) {
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  const std::string first = RunContainerIn(pod, config, "first", {"sleep", "1001"});
  const pid_t engine = node().Engine().pid;
  kill(engine, SIGKILL);
  ASSERT_TRUE(WaitGone(engine));
  EXPECT_EQ(Exec(first, {"sh", "-c", "exit 4"}).exit_code, 4);
  const std::string second = RunContainerIn(pod, config, "second", {"sleep", "1002"});
  EXPECT_EQ(Exec(second, {"echo", "on"}).out, "on\n");
  EXPECT_TRUE(cri().StopPod(pod));
  EXPECT_EQ(Sentries(pod), 0U);
}

TEST_P(GvisorCreatePod, MapsItsUsers) {
  if (settings().runsc_release == "20240729") {
    GTEST_SKIP() << "gofers before 2024-11 cannot ask for what their users cannot open";
  }
  // This runsc executes another program, which a gofer must find as who it is then.
  std::filesystem::permissions(settings().root, std::filesystem::perms(0711));
  PodConfig config = Pod();
  config.user_namespace.set_host_id(200000);
  config.user_namespace.set_length(65536);
  const std::string pod = RunPod(config);
  const std::string id = RunContainerIn(pod, config, "one", {"sleep", "1000"});
  struct stat sentry{};
  ASSERT_EQ(stat(("/proc/" + std::to_string(PidOf(id))).c_str(), &sentry), 0);
  EXPECT_EQ(sentry.st_uid, 200000U);
  EXPECT_EQ(Exec(id, {"id", "-u"}).out, "0\n");
  EXPECT_EQ(Exec(id, {"sh", "-c", "echo made > /file"}).exit_code, 0);
  RemovePods();
}

}  // namespace
}  // namespace gantry::e2e
