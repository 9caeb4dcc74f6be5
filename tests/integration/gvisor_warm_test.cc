// SPDX-License-Identifier: Apache-2.0
//
// Pods in sandboxes that were booted before them.
#include "tests/harness/gvisor_warm_test.h"

#include <fcntl.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>

namespace gantry::e2e {
namespace {

class GvisorWarm : public GvisorWarmTest {
 protected:
  static bool IsOneOf(pid_t pid, const std::vector<pid_t>& all) {
    return std::ranges::contains(all, pid);
  }

  /// The pod's sentry.
  pid_t RunPodOf(const PodConfig& config) {
    pod_ = RunPod(config);
    return OfPod();
  }

  void ExpectItWorks(const PodConfig& config) {
    const std::string id = RunContainerIn(pod_, config, "one", {"sleep", "1000"});
    EXPECT_EQ(Exec(id, {"sh", "-c", "exit 4"}).exit_code, 4);
    if (!config.hostname.empty()) {
      EXPECT_EQ(Exec(id, {"hostname"}).out, config.hostname + "\n");
    }
  }

  std::string pod_;
};

TEST_F(GvisorWarm, TakesOneThatWaits) {
  Restart(2);
  const std::vector<pid_t> before = Waiting();
  ASSERT_EQ(before.size(), 2U);
  PodConfig config = NamedPod();
  const pid_t sentry = RunPodOf(config);
  EXPECT_TRUE(IsOneOf(sentry, before)) << sentry;
  ExpectItWorks(config);
  EXPECT_EQ(Count("warm_taken"), 1U);
  EXPECT_EQ(Count("warm_failed"), 0U);
  EXPECT_TRUE(cri().StopPod(pod_));
  EXPECT_TRUE(WaitGone(sentry));
}

TEST_F(GvisorWarm, GoesOnWithTheLogThatItHasBegun) {
  const std::string folder = settings().root + "/" + Id("-logs");
  Restart(1, "        debug-log: " + folder + "/%COMMAND%.log\n");
  const std::string log = folder + "/boot.log";
  const size_t before = ReadText(log).size();
  EXPECT_GT(before, 0U);
  const PodConfig config = NamedPod();
  RunPodOf(config);
  ExpectItWorks(config);
  EXPECT_EQ(Count("warm_taken"), 1U);
  EXPECT_TRUE(WaitForText(log, config.hostname, before)) << ReadText(log);
  EXPECT_GT(ReadText(folder + "/gofer.log").size(), 0U);
  // A pod that boots its own has a user log, which this one could not be given.
  EXPECT_FALSE(std::filesystem::exists(config.log_directory + "/gvisor.log"));
  Restart(0);
  const PodConfig cold = NamedPod("-cold");
  RunPod(cold);
  EXPECT_TRUE(std::filesystem::exists(cold.log_directory + "/gvisor.log"));
  std::filesystem::remove_all(folder);
}

TEST_F(GvisorWarm, IsReplacedWhenTaken) {
  Restart(2);
  const std::vector<pid_t> before = Waiting();
  const PodConfig config = NamedPod();
  const pid_t first = RunPodOf(config);
  AwaitReady(2);
  const std::vector<pid_t> after = Waiting();
  EXPECT_EQ(after.size(), 2U);
  EXPECT_FALSE(IsOneOf(first, after));
  EXPECT_TRUE(std::ranges::any_of(after, [&](pid_t pid) { return IsOneOf(pid, before); }));
}

TEST_F(GvisorWarm, ServesAsManyPodsAsCome) {
  Restart(2);
  std::vector<std::string> pods;
  for (int i = 0; i < 5; ++i) {
    const PodConfig config = NamedPod("-" + std::to_string(i));
    pods.push_back(RunPod(config));
    const std::string id = RunContainerIn(pods.back(), config, "one", {"sh", "-c", "exit 6"});
    EXPECT_EQ(WaitForEnd(id).exit_code(), 6);
  }
  EXPECT_EQ(OfPods().size(), 5U);
  EXPECT_GE(Count("warm_taken"), 2U);
  AwaitReady(2);
}

TEST_F(GvisorWarm, IsInThePodsCgroupWithAllThatItHasStarted) {
  Restart(1);
  const PodConfig config = NamedPod();
  const pid_t sentry = RunPodOf(config);
  // Its stubs, and what helped to boot it until it was started.
  std::vector<pid_t> family = {sentry};
  for (size_t i = 0; i < family.size(); ++i) {
    for (const HostProcess& child :
         Processes([&](const HostProcess& process) { return process.parent == family[i]; })) {
      family.push_back(child.pid);
    }
  }
  EXPECT_GT(family.size(), 1U);
  const auto inside = ProcessesInCgroup(config.cgroup_parent);
  for (const pid_t pid : family) {
    EXPECT_TRUE(std::ranges::contains(inside, pid, &HostProcess::pid)) << pid;
  }
}

TEST_F(GvisorWarm, IsReplacedWhenKilled) {
  Restart(2);
  const std::vector<pid_t> before = Waiting();
  ASSERT_EQ(before.size(), 2U);
  kill(before.front(), SIGKILL);
  ASSERT_TRUE(WaitGone(before.front()));
  EXPECT_TRUE(Eventually([&] { return Count("warm_failed") == 1U; }));
  AwaitReady(2);
  EXPECT_FALSE(IsOneOf(before.front(), Waiting()));
  const PodConfig config = NamedPod();
  RunPodOf(config);
  ExpectItWorks(config);
}

TEST_F(GvisorWarm, IsNotForAPodWithALimit) {
  Restart(1);
  const std::vector<pid_t> before = Waiting();
  PodConfig config = NamedPod();
  config.memory.overhead = 64 << 20;
  config.memory.resources = 256 << 20;
  const pid_t sentry = RunPodOf(config);
  EXPECT_FALSE(IsOneOf(sentry, before));
  ExpectItWorks(config);
  EXPECT_EQ(Count("warm_taken"), 0U);
}

TEST_F(GvisorWarm, IsNotForAPodOnTheNodesNetwork) {
  Restart(1);
  const std::vector<pid_t> before = Waiting();
  const PodConfig config = Pod();
  const pid_t sentry = RunPodOf(config);
  EXPECT_FALSE(IsOneOf(sentry, before));
  ExpectItWorks(config);
}

TEST_F(GvisorWarm, IsNotForAPodWithAPauseContainer) {
  Restart(1);
  const std::vector<pid_t> before = Waiting();
  PodConfig config = NamedPod();
  config.runtime_handler = "gantry";
  const pid_t sentry = RunPodOf(config);
  EXPECT_FALSE(IsOneOf(sentry, before));
  ExpectItWorks(config);
}

TEST_F(GvisorWarm, IsNoneWithoutAnyWanted) {
  Restart(0);
  EXPECT_EQ(Count("warm_wanted"), std::nullopt);
  const PodConfig config = NamedPod();
  RunPodOf(config);
  ExpectItWorks(config);
  EXPECT_TRUE(Waiting().empty());
  EXPECT_TRUE(ListFolder(folder() + "/warm").empty());
}

TEST_F(GvisorWarm, IsOfTheBuildThatIsThere) {
  const std::string copy = settings().root + "/runsc-copy";
  const auto put = [&] {
    std::filesystem::copy_file(settings().RunscOf(settings().runsc_release), copy + ".new");
    std::filesystem::rename(copy + ".new", copy);
  };
  put();
  std::string text = GantryConfiguration(settings());
  const std::string own = settings().RunscOf(settings().runsc_release);
  text.replace(text.find(own), own.size(), copy);
  WriteText(settings().root + "/gantry.yaml", text + "      warm: 1\n");
  ASSERT_EQ(Gantryctl({"restart"}).status, 0);
  AwaitReady(1);
  const std::vector<pid_t> before = Waiting();
  ASSERT_EQ(before.size(), 1U);
  put();
  const PodConfig config = NamedPod();
  const pid_t sentry = RunPodOf(config);
  EXPECT_FALSE(IsOneOf(sentry, before));
  ExpectItWorks(config);
  EXPECT_TRUE(WaitGone(before.front()));
  AwaitReady(1);
  EXPECT_EQ(Count("warm_failed"), 0U);
}

}  // namespace
}  // namespace gantry::e2e
