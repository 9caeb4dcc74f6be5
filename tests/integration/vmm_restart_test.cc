// SPDX-License-Identifier: Apache-2.0
//
// Machines outlive gantry's engine and containerd, and the guest does not notice.
#include <signal.h>

#include <gmock/gmock.h>

#include "tests/harness/events.h"
#include "tests/harness/vmm_test.h"

namespace gantry::e2e {
namespace {

class VmmRestart : public VmmTest {
 protected:
  void TearDown() override {
    if (!IsSkipped()) {
      EXPECT_TRUE(Eventually([] { return node().Engine().pid != 0; }));
    }
    VmmTest::TearDown();
  }

  static void ExpectServed(const std::string& id) {
    EXPECT_EQ(FindTask(id).state, "RUNNING");
    EXPECT_EQ(Exec(id, {"sh", "-c", "exit 6"}).status, 6);
    EXPECT_EQ(Ctr({"tasks", "pause", id}).status, 0);
    EXPECT_EQ(Ctr({"tasks", "resume", id}).status, 0);
    EXPECT_THAT(Ctr({"tasks", "metrics", id}).out, testing::HasSubstr("memory"));
  }
};

// K7: every call works, each time.
TEST_F(VmmRestart, OfTheEngineManyTimesLeavesTheMachine) {
  const std::string id = Id();
  StartDetached(id, {"sleep", "100000"});
  const auto before = Helpers(settings().vmm_program());
  ASSERT_EQ(before.size(), 1U);
  for (int round = 0; round < 5; ++round) {
    ASSERT_NO_FATAL_FAILURE(KillEngine());
    ExpectServed(id);
  }
  const auto after = Helpers(settings().vmm_program());
  ASSERT_EQ(after.size(), 1U);
  EXPECT_EQ(after.front().pid, before.front().pid);
  Remove(id);
}

TEST_F(VmmRestart, OfTheEngineLosesNothingThatIsInFlight) {
  const std::string id = Id();
  const std::string count =
      "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; exit 7";
  Program program = StartScript(id, count);
  for (int round = 0; round < 3; ++round) {
    ASSERT_NO_FATAL_FAILURE(KillEngine());
    ASSERT_TRUE(Eventually([] { return node().Engine().pid != 0; }));
  }
  EXPECT_EQ(program.Wait(kLong), 7) << program.err();
  std::string wanted = "up\n";
  for (int i = 0; i < 20000; ++i) {
    wanted += "line " + std::to_string(i) + "\n";
  }
  EXPECT_TRUE(program.out() == wanted) << program.out().size() << " of " << wanted.size();
}

TEST_F(VmmRestart, OfTheEngineKeepsWhatEndedMeanwhile) {
  const std::string id = Id();
  Program program = StartScript(id, "sleep 1; exit 9");
  ASSERT_NO_FATAL_FAILURE(KillEngine());
  EXPECT_EQ(program.Wait(kLong), 9) << program.err();
}

TEST_F(VmmRestart, OfContainerdLeavesMachinesAndTheirStreams) {
  const std::string id = Id();
  StartDetached(id, {"cat"});
  ASSERT_EQ(node().RestartContainerd(), "");
  ExpectServed(id);
  Remove(id);
}

TEST_F(VmmRestart, FindsAMachineThatEndedMeanwhile) {
  const std::string id = Id();
  StartDetached(id, {"sleep", "100000"});
  const auto machines = Helpers(settings().vmm_program());
  ASSERT_EQ(machines.size(), 1U);
  const pid_t engine = node().Engine().pid;
  ASSERT_EQ(kill(engine, SIGSTOP), 0);
  ASSERT_EQ(kill(machines.front().pid, SIGKILL), 0);
  ASSERT_EQ(kill(engine, SIGKILL), 0);
  ASSERT_TRUE(WaitGone(engine));
  EXPECT_TRUE(WaitForState(id, "STOPPED"));
  const Output removed = Ctr({"tasks", "rm", id});
  EXPECT_THAT(removed.err, testing::HasSubstr("exit code 137")) << removed.Text();
  EXPECT_EQ(Ctr({"containers", "rm", id}).status, 0);
}

}  // namespace
}  // namespace gantry::e2e
