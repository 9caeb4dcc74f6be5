// SPDX-License-Identifier: Apache-2.0
//
// Nobody stays who waits for a pod, whoever ends and how; and pods go on.
#include <signal.h>

#include <algorithm>
#include <filesystem>

#include "tests/harness/gvisor_warm_test.h"

namespace gantry::e2e {
namespace {

class GvisorWarmEnds : public GvisorWarmTest {
 protected:
  void SetUp() override {
    GvisorWarmTest::SetUp();
    if (!IsSkipped() && !HasFatalFailure()) {
      Restart(2);
    }
  }

  void TearDown() override { GvisorWarmTest::TearDown(); }

  void RunPodWithContainer() {
    config_ = NamedPod();
    pod_ = RunPod(config_);
    container_ = RunContainerIn(pod_, config_, "one", {"sleep", "1000"});
    sentry_ = OfPod();
  }

  void ExpectPodGoesOn() {
    EXPECT_EQ(OfPod(), sentry_);
    EXPECT_EQ(Exec(container_, {"sh", "-c", "exit 4"}).exit_code, 4);
    EXPECT_EQ(Exec(container_, {"hostname"}).out, "web-0\n");
    const std::string other = RunContainerIn(pod_, config_, "two", {"sh", "-c", "exit 5"});
    EXPECT_EQ(WaitForEnd(other).exit_code(), 5);
  }

  static void ExpectGone(const std::vector<pid_t>& all) {
    for (const pid_t pid : all) {
      EXPECT_TRUE(WaitGone(pid)) << pid;
    }
  }

  std::vector<std::string> Folders() const { return ListFolder(folder() + "/warm"); }

  PodConfig config_;
  std::string pod_;
  std::string container_;
  pid_t sentry_ = 0;
};

TEST_F(GvisorWarmEnds, TheEngineIsReplaced) {
  RunPodWithContainer();
  AwaitReady(2);
  const std::vector<pid_t> before = Waiting();
  ASSERT_EQ(before.size(), 2U);
  ASSERT_EQ(Gantryctl({"restart"}).status, 0);
  ExpectGone(before);
  AwaitReady(2);
  ExpectPodGoesOn();
  EXPECT_EQ(Folders().size(), 1U);
}

TEST_F(GvisorWarmEnds, TheEngineIsKilled) {
  RunPodWithContainer();
  AwaitReady(2);
  const std::vector<pid_t> before = Waiting();
  ASSERT_EQ(before.size(), 2U);
  const pid_t engine = node().Engine().pid;
  kill(engine, SIGKILL);
  ASSERT_TRUE(WaitGone(engine));
  ExpectGone(before);
  AwaitReady(2);
  ExpectPodGoesOn();
  EXPECT_EQ(Folders().size(), 1U);
}

TEST_F(GvisorWarmEnds, TheEngineIsKilledWhileOneIsTaken) {
  for (int i = 0; i < 10; ++i) {
    const PodConfig config = NamedPod("-" + std::to_string(i));
    const pid_t engine = node().Engine().pid;
    if (engine > 0) {
      kill(engine, SIGKILL);
    }
    const std::string pod = RunPod(config);
    const std::string id = RunContainerIn(pod, config, "one", {"true"});
    EXPECT_EQ(WaitForEnd(id).exit_code(), 0);
  }
  AwaitReady(2);
  EXPECT_EQ(OfPods().size(), 10U);
  EXPECT_EQ(Waiting().size(), 2U);
  EXPECT_EQ(Folders().size(), 1U);
}

TEST_F(GvisorWarmEnds, TheKeeperIsKilled) {
  const std::vector<pid_t> before = Waiting();
  ASSERT_EQ(before.size(), 2U);
  const pid_t engine = node().Engine().pid;
  kill(node().Keeper().pid, SIGKILL);
  ASSERT_TRUE(WaitGone(engine));
  ExpectGone(before);
  EXPECT_TRUE(Folders().empty());
}

TEST_F(GvisorWarmEnds, KeeperAndEngineAreKilled) {
  const std::vector<pid_t> before = Waiting();
  ASSERT_EQ(before.size(), 2U);
  const pid_t engine = node().Engine().pid;
  const pid_t keeper = node().Keeper().pid;
  kill(engine, SIGSTOP);
  kill(keeper, SIGKILL);
  ASSERT_TRUE(WaitGone(keeper));
  kill(engine, SIGKILL);
  ASSERT_TRUE(WaitGone(engine));
  EXPECT_EQ(Waiting().size(), 2U) << "nobody was there to end them";
  // The next container brings the next keeper.
  EXPECT_EQ(RunContainer({"--rm"}, Id(), {"true"}).status, 0);
  ExpectGone(before);
  AwaitReady(2);
  EXPECT_EQ(Folders().size(), 1U);
}

TEST_F(GvisorWarmEnds, TheHandlerWantsNoneAnyMore) {
  RunPodWithContainer();
  AwaitReady(2);
  const std::vector<pid_t> before = Waiting();
  Restart(0);
  ExpectGone(before);
  ExpectPodGoesOn();
}

}  // namespace
}  // namespace gantry::e2e
