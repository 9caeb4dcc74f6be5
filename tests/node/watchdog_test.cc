// SPDX-License-Identifier: Apache-2.0
//
// systemd's watchdog of the keeper: it is told that the loop turns, over a change of the
// program, too; a keeper that hangs is ended and another one started.
#include <signal.h>

#include <filesystem>

#include <gmock/gmock.h>

#include "tests/node/harness/node_test.h"

namespace gantry::node {
namespace {

/// With a watchdog that waits for less than the unit's two minutes.
class KeeperWatchdog : public NodeTest {
 protected:
  void SetUp() override {
    NodeTest::SetUp();
    const auto time = e2e::Bound(std::chrono::seconds(5));
    std::filesystem::create_directories(kFolder);
    e2e::WriteText(std::string(kFolder) + "/test.conf",
                   "[Service]\nWatchdogSec=" + std::to_string(time.count()) + "ms\n");
    ASSERT_NO_FATAL_FAILURE(ReplaceKeeper());
  }

  void TearDown() override {
    EndAll();
    std::filesystem::remove_all(kFolder);
    ASSERT_NO_FATAL_FAILURE(ReplaceKeeper());
    EXPECT_EQ(Property(kKeeperUnit, "WatchdogUSec"), "2min");
    NodeTest::TearDown();
  }

  /// By one that has the unit's present settings.
  static void ReplaceKeeper() {
    ASSERT_EQ(Systemctl({"daemon-reload"}).status, 0);
    ASSERT_TRUE(EndKeeper());
    ASSERT_EQ(Systemctl({"restart", kEngineUnit}).status, 0);
    ASSERT_NE(Keeper(), 0);
  }

  /// Waits for the watchdog to be told so often.
  static bool IsTold(int times) {
    std::string last = Property(kKeeperUnit, "WatchdogTimestampMonotonic");
    int told = 0;
    return e2e::Eventually([&] {
      const std::string now = Property(kKeeperUnit, "WatchdogTimestampMonotonic");
      told += now == last ? 0 : 1;
      last = now;
      return told >= times;
    });
  }

 private:
  static constexpr char kFolder[] = "/run/systemd/system/gantry-keeper.service.d";
};

TEST_F(KeeperWatchdog, IsToldThatTheLoopTurnsOverAChangeOfTheProgram) {
  const std::string id = Id();
  ASSERT_NO_FATAL_FAILURE(Start(id, {"sleep", "1000"}));
  const pid_t keeper = Keeper();
  EXPECT_TRUE(IsTold(2));
  ASSERT_EQ(Systemctl({"reload", kKeeperUnit}).status, 0);
  // One is from the moment of the change, and four are longer than the watchdog waits.
  EXPECT_TRUE(IsTold(5));
  EXPECT_EQ(Keeper(), keeper);
  EXPECT_EQ(ActiveState(kKeeperUnit), "active");
  EXPECT_EQ(Exec(id, {"sh", "-c", "exit 5"}).status, 5);
}

TEST_F(KeeperWatchdog, EndsAKeeperThatHangsAndAnotherOneCleansUp) {
  const std::string id = Id();
  ASSERT_NO_FATAL_FAILURE(Start(id, {"sleep", "1000"}));
  const pid_t pid = FindTask(id).pid;
  const pid_t keeper = Keeper();
  const int restarts = std::stoi(Property(kKeeperUnit, "NRestarts"));
  ASSERT_EQ(kill(keeper, SIGSTOP), 0);
  EXPECT_TRUE(e2e::WaitGone(keeper, e2e::kLong));
  EXPECT_TRUE(e2e::WaitGone(pid)) << "containerd has called `delete`";
  EXPECT_TRUE(e2e::Eventually([&] { return Keeper() != 0 && Keeper() != keeper; }));
  EXPECT_EQ(Property(kKeeperUnit, "NRestarts"), std::to_string(restarts + 1));
  EXPECT_EQ(ActiveState(kKeeperUnit), "active");
  const std::string next = Id();
  ASSERT_NO_FATAL_FAILURE(Start(next, {"sleep", "1000"}));
  EXPECT_EQ(Exec(next, {"sh", "-c", "exit 5"}).status, 5);
}

}  // namespace
}  // namespace gantry::node
