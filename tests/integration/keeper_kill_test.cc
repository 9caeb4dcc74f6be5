// SPDX-License-Identifier: Apache-2.0
//
// kill -9 of the process that containerd is connected to (the keeper, or the
// stock shim): containerd takes its containers for dead, so they must be, and
// all of them must be gone.

#include <signal.h>

#include "tests/integration/harness/e2e_test.h"

namespace gantry::e2e {
namespace {

class KeeperKill : public E2eTest {
 protected:
  static void Kill() {
    pid_t pid = node().Keeper().pid;
    if (settings().stock()) {
      const auto shims = Processes([](const HostProcess& process) {
        return process.name == "containerd-shim-runc-v2" &&
               process.command.find(node().address()) != std::string::npos;
      });
      pid = shims.empty() ? 0 : shims.front().pid;
    }
    ASSERT_GT(pid, 0);
    kill(pid, SIGKILL);
    ASSERT_TRUE(WaitGone(pid));
  }
};

TEST_F(KeeperKill, EndsAndCleansItsContainers) {
  const std::string id = Id();
  // Nobody is left to remove the fifos of a client that has gone.
  StartDetached(id, {"sleep", "1000"}, {"--null-io"});
  const pid_t pid = FindTask(id).pid;
  Kill();
  EXPECT_TRUE(WaitGone(pid));
  EXPECT_TRUE(Eventually([&] { return FindTask(id).pid == 0; }));
  EXPECT_EQ(Ctr({"containers", "rm", id}).status, 0);
}

TEST_F(KeeperKill, LetsNewContainersStart) {
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"}, {"--null-io"});
  Kill();
  EXPECT_TRUE(Eventually([&] { return FindTask(id).pid == 0; }));
  EXPECT_EQ(Ctr({"containers", "rm", id}).status, 0);
  const Output output = RunContainer({"--rm"}, Id("new"), {"sh", "-c", "exit 5"});
  EXPECT_EQ(output.status, 5) << output.Text();
}

}  // namespace
}  // namespace gantry::e2e
