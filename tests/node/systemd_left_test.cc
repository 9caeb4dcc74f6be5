// SPDX-License-Identifier: Apache-2.0
//
// A scope that has failed while neither keeper, engine nor containerd was there: the OCI
// runtime's `delete`, which the shim runs by the record, has systemd forget it.
#include <signal.h>

#include <string>

#include <gmock/gmock.h>

#include "tests/node/harness/node_test.h"

namespace gantry::node {
namespace {

class LeftScope : public NodeTest {
 protected:
  void TearDown() override {
    // Also where the test ends early.
    EXPECT_EQ(Systemctl({"start", kContainerdUnit}).status, 0);
    NodeTest::TearDown();
  }
};

TEST_F(LeftScope, IsForgottenByTheCleanUpAndItsNameIsFree) {
  const std::string id = Id();
  // With this systemd ends the scope when memory runs out in it, and keeps it as failed. Without,
  // one that is delegated goes on.
  const Words flags = {"--memory-limit", "67108864", "--annotation",
                       "org.systemd.property.OOMPolicy='kill'"};
  ASSERT_NO_FATAL_FAILURE(
      Start(id, {"sh", "-c", "while [ ! -e /go ]; do sleep 1; done; exec tail /dev/zero"}, flags));
  const pid_t init = FindTask(id).pid;
  const pid_t keeper = Keeper();
  const pid_t engine = Engine();
  ASSERT_EQ(Systemctl({"stop", kContainerdUnit}).status, 0);
  // Else it starts another engine.
  ASSERT_EQ(kill(keeper, SIGSTOP), 0);
  ASSERT_EQ(kill(engine, SIGKILL), 0);
  ASSERT_EQ(kill(keeper, SIGKILL), 0);
  ASSERT_TRUE(e2e::WaitGone(keeper) && e2e::WaitGone(engine));
  e2e::WriteText("/proc/" + std::to_string(init) + "/root/go", "");
  ASSERT_TRUE(e2e::Eventually([&] { return ActiveState(Scope(id)) == "failed"; }))
      << ActiveState(Scope(id));

  // It takes the container for dead, and runs the shim's `delete`.
  ASSERT_EQ(Systemctl({"start", kContainerdUnit}).status, 0);
  EXPECT_TRUE(e2e::Eventually([&] { return ActiveState(Scope(id)) == "inactive"; }))
      << ActiveState(Scope(id));
  ASSERT_NO_FATAL_FAILURE(End(id));
  ASSERT_NO_FATAL_FAILURE(Start(id, {"sleep", "1000"}));
  EXPECT_EQ(ActiveState(Scope(id)), "active");
  EXPECT_EQ(Exec(id, {"sh", "-c", "exit 5"}).status, 5);
}

}  // namespace
}  // namespace gantry::node
