// SPDX-License-Identifier: Apache-2.0
//
// gantry-keeper.service and .socket: what ends a keeper, and what starts one.
#include <signal.h>

#include <gmock/gmock.h>

#include "tests/node/harness/node_test.h"

namespace gantry::node {
namespace {

class KeeperUnit : public NodeTest {};

TEST_F(KeeperUnit, HasTheSettingsOfItsFile) {
  EXPECT_EQ(ActiveState(kKeeperUnit), "active");
  const std::pair<const char*, const char*> settings[] = {
      {"Type", "notify"},         {"NotifyAccess", "main"},  {"WatchdogUSec", "2min"},
      {"OOMScoreAdjust", "-999"}, {"OOMPolicy", "continue"}, {"Delegate", "yes"},
      {"KillMode", "process"},    {"Restart", "on-failure"}, {"RefuseManualStop", "yes"}};
  for (const auto& [name, value] : settings) {
    EXPECT_EQ(Property(kKeeperUnit, name), value) << name;
  }
}

TEST_F(KeeperUnit, RefusesAStopAndARestart) {
  const std::string id = Id();
  ASSERT_NO_FATAL_FAILURE(Start(id, {"sleep", "1000"}));
  const pid_t keeper = Keeper();
  for (const char* verb : {"stop", "restart", "try-restart"}) {
    const e2e::Output output = Systemctl({verb, kKeeperUnit});
    EXPECT_NE(output.status, 0) << verb;
    EXPECT_THAT(output.err, testing::HasSubstr("refused")) << verb;
  }
  EXPECT_EQ(Keeper(), keeper);
  EXPECT_EQ(Exec(id, {"true"}).status, 0);
}

TEST_F(KeeperUnit, GoesOnAfterASigtermWhileItHasContainers) {
  const std::string id = Id();
  ASSERT_NO_FATAL_FAILURE(Start(id, {"sleep", "1000"}));
  const pid_t keeper = Keeper();
  ASSERT_EQ(Systemctl({"kill", "--kill-whom=main", kKeeperUnit}).status, 0);
  EXPECT_EQ(Exec(id, {"true"}).status, 0);
  EXPECT_EQ(Keeper(), keeper);
  End(id);
  EXPECT_TRUE(e2e::WaitGone(keeper));
  // By its socket, another one.
  const std::string next = Id();
  ASSERT_NO_FATAL_FAILURE(Start(next, {"sleep", "1000"}));
  EXPECT_NE(Keeper(), keeper);
}

TEST_F(KeeperUnit, BecomesTheInstalledProgramByAReload) {
  const std::string id = Id();
  ASSERT_NO_FATAL_FAILURE(Start(id, {"sleep", "1000"}));
  const pid_t pid = FindTask(id).pid;
  const pid_t keeper = Keeper();
  const pid_t engine = Engine();
  const std::string restarts = Property(kKeeperUnit, "NRestarts");
  const e2e::Output reloaded = Systemctl({"reload", kKeeperUnit});
  ASSERT_EQ(reloaded.status, 0) << reloaded.Text();
  const std::string command = e2e::ReadText("/proc/" + std::to_string(keeper) + "/cmdline");
  EXPECT_THAT(command, testing::HasSubstr("--state-fd=")) << "it has not become another program";
  EXPECT_EQ(ActiveState(kKeeperUnit), "active");
  EXPECT_EQ(Keeper(), keeper);
  EXPECT_EQ(Engine(), engine);
  EXPECT_EQ(Property(kKeeperUnit, "NRestarts"), restarts);
  EXPECT_EQ(FindTask(id).pid, pid);
  EXPECT_EQ(Exec(id, {"sh", "-c", "exit 5"}).status, 5);
  EXPECT_EQ(kill(pid, SIGKILL), 0);
  EXPECT_EQ(DeleteTask(id), 137);
}

TEST_F(KeeperUnit, IsStartedByItsSocketForTheNextContainer) {
  const pid_t keeper = Keeper();
  EXPECT_TRUE(EndKeeper());
  EXPECT_EQ(ActiveState(kKeeperSocket), "active");
  const std::string id = Id();
  ASSERT_NO_FATAL_FAILURE(Start(id, {"sleep", "1000"}));
  EXPECT_NE(Keeper(), 0);
  EXPECT_NE(Keeper(), keeper);
  EXPECT_EQ(CgroupOf(Keeper()), "/system.slice/gantry-keeper.service");
}

TEST_F(KeeperUnit, IsStartedAgainAfterAKillThatEndsItsContainers) {
  const std::string id = Id();
  ASSERT_NO_FATAL_FAILURE(Start(id, {"sleep", "1000"}));
  const pid_t pid = FindTask(id).pid;
  const pid_t keeper = Keeper();
  ASSERT_EQ(kill(keeper, SIGKILL), 0);
  EXPECT_TRUE(e2e::WaitGone(pid));
  EXPECT_TRUE(e2e::Eventually([&] { return Keeper() != 0 && Keeper() != keeper; }));
  const std::string next = Id();
  ASSERT_NO_FATAL_FAILURE(Start(next, {"sleep", "1000"}));
  EXPECT_EQ(Exec(next, {"sh", "-c", "exit 5"}).status, 5);
}

}  // namespace
}  // namespace gantry::node
