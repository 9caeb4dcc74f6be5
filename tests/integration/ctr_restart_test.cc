// SPDX-License-Identifier: Apache-2.0
//
// containerd is killed and started again while containers run.

#include <signal.h>

#include "tests/harness/e2e_test.h"
#include "tests/harness/events.h"

namespace gantry::e2e {
namespace {

// Ends with 7 on SIGTERM.
const Words kEndsWith7OnTerm{"sh", "-c", "trap 'exit 7' TERM; while :; do sleep 0.05; done"};

class CtrRestart : public E2eTest {
 protected:
  static void Restart() { ASSERT_EQ(node().RestartContainerd(), ""); }

  // Started, and its trap is set.
  pid_t StartReady(const std::string& id) {
    StartDetached(id, {"sh", "-c", "trap 'exit 7' TERM; >/ready; while :; do sleep 0.05; done"});
    EXPECT_EQ(Exec(id, {"sh", "-c", "until [ -e /ready ]; do sleep 0.02; done"}).status, 0);
    return FindTask(id).pid;
  }
};

TEST_F(CtrRestart, LeavesContainersRunning) {
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"});
  const pid_t pid = FindTask(id).pid;
  Restart();
  EXPECT_EQ(FindTask(id).pid, pid);
  EXPECT_EQ(FindTask(id).state, "RUNNING");
  Remove(id);
}

TEST_F(CtrRestart, LeavesContainersUsable) {
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"});
  Restart();
  EXPECT_EQ(Exec(id, {"sh", "-c", "exit 5"}).status, 5);
  EXPECT_EQ(Ctr({"tasks", "pause", id}).status, 0);
  EXPECT_EQ(Ctr({"tasks", "resume", id}).status, 0);
  Events events(node());
  ASSERT_EQ(Ctr({"tasks", "kill", "-s", "KILL", id}).status, 0);
  const auto seen = events.Until("/tasks/exit", id, id);
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.back().Field("exit_status"), "137");
  Remove(id);
}

TEST_F(CtrRestart, KeepsTheExitCodeOfAContainerThatEndedMeanwhile) {
  if (settings().stock()) {
    GTEST_SKIP() << "the stock shim loses it: containerd takes its empty answer for a leak";
  }
  const std::string id = Id();
  const pid_t pid = StartReady(id);
  ASSERT_GT(pid, 0);
  node().KillContainerd();
  kill(pid, SIGTERM);
  ASSERT_TRUE(WaitGone(pid));
  ASSERT_EQ(node().StartContainerd(), "");
  ASSERT_TRUE(WaitForState(id, "STOPPED"));
  const Output removed = Ctr({"tasks", "rm", id});
  EXPECT_NE(removed.err.find("exit code 7"), std::string::npos) << removed.Text();
  EXPECT_EQ(Ctr({"containers", "rm", id}).status, 0);
}

TEST_F(CtrRestart, KeepsTheExitCodeOfAContainerThatEndedBefore) {
  if (settings().stock()) {
    GTEST_SKIP() << "the stock shim loses it: containerd takes its empty answer for a leak";
  }
  const std::string id = Id();
  StartDetached(id, {"sh", "-c", "exit 9"});
  ASSERT_TRUE(WaitForState(id, "STOPPED"));
  Restart();
  EXPECT_EQ(FindTask(id).state, "STOPPED");
  const Output removed = Ctr({"tasks", "rm", id});
  EXPECT_NE(removed.err.find("exit code 9"), std::string::npos) << removed.Text();
  EXPECT_EQ(Ctr({"containers", "rm", id}).status, 0);
}

TEST_F(CtrRestart, LeavesStreamsThatCanBeAttachedTo) {
  const std::string id = Id();
  StartDetached(id, {"sh", "-c", "while read line; do echo got-$line; done; exit 3"});
  Restart();
  Program::Options options;
  options.input = true;
  Program attached = StartCtr(node(), {"tasks", "attach", id}, options);
  attached.Write("one\n");
  EXPECT_TRUE(attached.ReadUntil("got-one\n")) << attached.err();
  attached.Write("two\n");
  EXPECT_TRUE(attached.ReadUntil("got-two\n")) << attached.err();
  ASSERT_EQ(Ctr({"tasks", "kill", "-s", "KILL", id}).status, 0);
  EXPECT_EQ(attached.Wait(), 137) << attached.err();
  Remove(id);
}

TEST_F(CtrRestart, KeepsTenContainersApart) {
  std::vector<std::string> ids;
  std::vector<pid_t> pids;
  for (int i = 0; i < 10; ++i) {
    ids.push_back(Id("-" + std::to_string(i)));
    StartDetached(ids.back(), {"sleep", std::to_string(1000 + i)});
    pids.push_back(FindTask(ids.back()).pid);
  }
  Restart();
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(FindTask(ids[i]).pid, pids[i]);
    EXPECT_NE(Exec(ids[i], {"cat", "/proc/1/cmdline"}).out.find(std::to_string(1000 + i)),
              std::string::npos);
  }
  for (const std::string& id : ids) {
    Remove(id);
  }
}

TEST_F(CtrRestart, LetsNewContainersStart) {
  Restart();
  const Output output = RunContainer({"--rm"}, Id(), {"echo", "new"});
  EXPECT_EQ(output.out, "new\n") << output.Text();
}

TEST_F(CtrRestart, TwiceInARowChangesNothing) {
  const std::string id = Id();
  StartDetached(id, kEndsWith7OnTerm);
  const pid_t pid = FindTask(id).pid;
  Restart();
  Restart();
  EXPECT_EQ(FindTask(id).pid, pid);
  EXPECT_EQ(FindTask(id).state, "RUNNING");
  Remove(id);
}

}  // namespace
}  // namespace gantry::e2e
