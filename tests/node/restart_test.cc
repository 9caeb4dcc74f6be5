// SPDX-License-Identifier: Apache-2.0
//
// `systemctl restart containerd`, with containers.
#include <signal.h>

#include "tests/node/harness/node_test.h"

namespace gantry::node {
namespace {

class ContainerdRestart : public NodeTest {};

// It ends with 7 on SIGTERM.
const Words kEndsWith7{"sh", "-c", "trap 'exit 7' TERM; while :; do sleep 0.1; done"};

TEST_F(ContainerdRestart, LeavesContainersUsable) {
  const std::string id = Id();
  ASSERT_NO_FATAL_FAILURE(Start(id, {"sleep", "1000"}));
  const pid_t pid = FindTask(id).pid;
  const pid_t engine = Engine();
  ASSERT_EQ(Systemctl({"restart", kContainerdUnit}).status, 0);
  EXPECT_EQ(FindTask(id).pid, pid);
  EXPECT_EQ(FindTask(id).state, "RUNNING");
  EXPECT_EQ(Exec(id, {"sh", "-c", "exit 5"}).status, 5);
  EXPECT_EQ(Engine(), engine);
  EXPECT_EQ(kill(pid, SIGKILL), 0);
  EXPECT_EQ(DeleteTask(id), 137);
}

TEST_F(ContainerdRestart, KeepsTheExitCodeOfWhatEndedMeanwhile) {
  const std::string id = Id();
  ASSERT_NO_FATAL_FAILURE(Start(id, kEndsWith7));
  const pid_t pid = FindTask(id).pid;
  // Its trap is set when it has a child.
  ASSERT_TRUE(e2e::Eventually([&] { return CgroupNumber(id, "pids.current") == 2; }));
  ASSERT_EQ(Systemctl({"stop", kContainerdUnit}).status, 0);
  ASSERT_EQ(kill(pid, SIGTERM), 0);
  EXPECT_TRUE(e2e::WaitGone(pid));
  ASSERT_EQ(Systemctl({"start", kContainerdUnit}).status, 0);
  EXPECT_EQ(DeleteTask(id), 7);
}

}  // namespace
}  // namespace gantry::node
