// SPDX-License-Identifier: Apache-2.0
//
// gantry.service: the engine, restarted and killed with containers.
#include <signal.h>

#include <gmock/gmock.h>

#include "tests/node/harness/node_test.h"

namespace gantry::node {
namespace {

class EngineUnit : public NodeTest {};

TEST_F(EngineUnit, RunsTheEngineBelowTheKeeper) {
  EXPECT_EQ(CgroupOf(Keeper()), "/system.slice/gantry-keeper.service");
  EXPECT_EQ(CgroupOf(Engine()), "/system.slice/gantry-keeper.service");
  EXPECT_EQ(Property(kKeeperUnit, "Delegate"), "yes");
}

TEST_F(EngineUnit, ProtectsTheKeeperAloneFromTheOomKiller) {
  const std::string id = Id();
  ASSERT_NO_FATAL_FAILURE(Start(id, {"sleep", "1000"}));
  const auto score = [](pid_t pid) {
    return e2e::ReadText("/proc/" + std::to_string(pid) + "/oom_score_adj");
  };
  EXPECT_EQ(score(Keeper()), "-999\n");
  EXPECT_EQ(score(Engine()), "0\n");
  EXPECT_EQ(score(FindTask(id).pid), "0\n");
}

TEST_F(EngineUnit, IsReplacedByARestartAndNoContainerNotices) {
  const std::string id = Id();
  ASSERT_NO_FATAL_FAILURE(Start(id, {"sleep", "1000"}));
  const pid_t pid = FindTask(id).pid;
  const pid_t keeper = Keeper();
  const pid_t engine = Engine();
  const e2e::Output restarted = Systemctl({"restart", kEngineUnit});
  ASSERT_EQ(restarted.status, 0) << restarted.Text();
  EXPECT_TRUE(e2e::WaitGone(engine));
  EXPECT_NE(Engine(), engine);
  EXPECT_EQ(Keeper(), keeper);
  EXPECT_EQ(FindTask(id).pid, pid);
  EXPECT_EQ(Exec(id, {"sh", "-c", "exit 5"}).status, 5);
  EXPECT_THAT(Ctr({"tasks", "metrics", "--format", "json", id}).out, testing::HasSubstr("pids"));
  EXPECT_EQ(kill(pid, SIGKILL), 0);
  EXPECT_EQ(DeleteTask(id), 137);
}

TEST_F(EngineUnit, IsReplacedByAReloadToo) {
  const pid_t engine = Engine();
  ASSERT_EQ(Systemctl({"reload", kEngineUnit}).status, 0);
  EXPECT_NE(Engine(), engine);
}

TEST_F(EngineUnit, LeavesContainersWhenItIsStopped) {
  const std::string id = Id();
  ASSERT_NO_FATAL_FAILURE(Start(id, {"sleep", "1000"}));
  ASSERT_EQ(Systemctl({"stop", kEngineUnit}).status, 0);
  EXPECT_EQ(Exec(id, {"sh", "-c", "exit 5"}).status, 5);
  ASSERT_EQ(Systemctl({"start", kEngineUnit}).status, 0);
  EXPECT_EQ(Exec(id, {"sh", "-c", "exit 6"}).status, 6);
}

TEST_F(EngineUnit, OutlivesAKillOfTheEngine) {
  const std::string id = Id();
  ASSERT_NO_FATAL_FAILURE(Start(id, {"sleep", "1000"}));
  const pid_t engine = Engine();
  ASSERT_EQ(kill(engine, SIGKILL), 0);
  EXPECT_EQ(Exec(id, {"sh", "-c", "exit 5"}).status, 5);
  EXPECT_NE(Engine(), engine);
}

}  // namespace
}  // namespace gantry::node
