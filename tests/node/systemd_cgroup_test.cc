// SPDX-License-Identifier: Apache-2.0
//
// Containers in scopes that systemd has made, under cgroup v2.
#include <signal.h>

#include <gmock/gmock.h>

#include "tests/harness/take_memory.h"
#include "tests/node/harness/node_test.h"

namespace gantry::node {
namespace {

using testing::HasSubstr;

class SystemdCgroup : public NodeTest {};

// crun makes a group of its own in the scope.
auto InScope(const std::string& id) {
  return testing::StartsWith("/system.slice/gantry-" + id + ".scope");
}

std::string Metrics(const std::string& id) {
  const e2e::Output metrics = Ctr({"tasks", "metrics", "--format", "json", id});
  EXPECT_EQ(metrics.status, 0) << metrics.Text();
  std::string out = metrics.out;
  std::erase_if(out, [](char c) { return c == ' ' || c == '\n'; });
  return out;
}

TEST_F(SystemdCgroup, IsTheOnlyVersion) {
  EXPECT_TRUE(e2e::Eventually([] { return !e2e::ListFolder("/sys/fs/cgroup").empty(); }));
  EXPECT_THAT(e2e::ReadText("/sys/fs/cgroup/cgroup.controllers"), HasSubstr("memory"));
}

TEST_F(SystemdCgroup, IsAScopeWithTheContainerInIt) {
  const std::string id = Id();
  ASSERT_NO_FATAL_FAILURE(Start(id, {"sleep", "1000"}));
  EXPECT_EQ(ActiveState(Scope(id)), "active");
  EXPECT_THAT(CgroupOf(FindTask(id).pid), InScope(id));
  End(id);
  EXPECT_TRUE(e2e::Eventually([&] { return ActiveState(Scope(id)) == "inactive"; }));
  EXPECT_TRUE(e2e::ListFolder(CgroupFolder(id)).empty());
}

// As dockerd asks for it, which sends no options.
TEST_F(SystemdCgroup, IsAScopeByItsNameAlone) {
  const std::string id = Id();
  ASSERT_NO_FATAL_FAILURE(
      Start(id, {"sleep", "1000"}, {"--runtime", "io.containerd.gantry-" + Oci() + "-plain.v1"}));
  EXPECT_EQ(ActiveState(Scope(id)), "active");
  EXPECT_THAT(CgroupOf(FindTask(id).pid), InScope(id));
  EXPECT_THAT(e2e::FindNames("/sys/fs/cgroup", ":gantry:" + id), testing::IsEmpty());
  EXPECT_EQ(Exec(id, {"sh", "-c", "exit 5"}).status, 5);
}

TEST_F(SystemdCgroup, IsMeasured) {
  const std::string id = Id();
  ASSERT_NO_FATAL_FAILURE(
      Start(id, {"sh", "-c", "sleep 1000 & sleep 1000 & wait"}, {"--memory-limit", "67108864"}));
  EXPECT_TRUE(e2e::Eventually([&] { return CgroupNumber(id, "pids.current") == 3; }));
  const std::string metrics = Metrics(id);
  EXPECT_THAT(metrics, HasSubstr("\"pids\":{\"current\":3"));
  EXPECT_THAT(metrics, HasSubstr("\"usage_limit\":67108864"));
  EXPECT_EQ(CgroupNumber(id, "memory.max"), 67108864);
  EXPECT_THAT(metrics, testing::ContainsRegex("\"usage\":[1-9]"));
  EXPECT_THAT(metrics, testing::ContainsRegex("\"usage_usec\":[1-9]"));
}

TEST_F(SystemdCgroup, EndsWhatNeedsMoreThanItsMemory) {
  const std::string id = Id();
  const e2e::Output output =
      CtrRun(id, e2e::TakeMemory(60'000'000),
             {"--rm", "--memory-limit", "16777216", "--cgroup", "system.slice:gantry:" + id});
  EXPECT_EQ(output.status, 137) << output.Text();
  EXPECT_TRUE(e2e::Eventually([&] { return Leftovers(id).empty(); })) << Leftovers(id);
}

TEST_F(SystemdCgroup, IsFrozenAndThawed) {
  const std::string id = Id();
  ASSERT_NO_FATAL_FAILURE(Start(id, {"sleep", "1000"}));
  ASSERT_EQ(Ctr({"tasks", "pause", id}).status, 0);
  const std::string events = "/sys/fs/cgroup" + CgroupOf(FindTask(id).pid) + "/cgroup.events";
  EXPECT_THAT(events, HasSubstr(Scope(id)));
  EXPECT_THAT(e2e::ReadText(events), HasSubstr("frozen 1"));
  ASSERT_EQ(Ctr({"tasks", "resume", id}).status, 0);
  EXPECT_THAT(e2e::ReadText(events), HasSubstr("frozen 0"));
  EXPECT_EQ(FindTask(id).state, "RUNNING");
}

TEST_F(SystemdCgroup, IsEmptiedByAKillOfAll) {
  const std::string id = Id();
  ASSERT_NO_FATAL_FAILURE(Start(id, {"sh", "-c", "sleep 1000 & sleep 1000 & wait"}));
  EXPECT_EQ(Ctr({"tasks", "kill", "-s", "KILL", "-a", id}).status, 0);
  EXPECT_EQ(DeleteTask(id), 137);
}

}  // namespace
}  // namespace gantry::node
