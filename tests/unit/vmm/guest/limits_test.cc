// SPDX-License-Identifier: Apache-2.0
//
// What a container may use and what it has used, as its cgroup has it.
#include <algorithm>
#include <csignal>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/cgroup/cgroup.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/vmm/guest/maker.h"
#include "plugins/vmm/guest/stats.h"
#include "tests/unit/vmm/guest/host.h"

namespace gantry::vmm {
namespace {

class AgentLimits : public GuestTest {
 protected:
  std::string LimitOf(const std::string& id, const std::string& v1, const std::string& v2) {
    const auto hierarchy = cgroup::CgroupHierarchy::OfNode();
    const auto cgroup = cgroup::Cgroup::Named(*hierarchy, guest::CgroupPathOf(id));
    const std::string file = cgroup->is_unified() ? v2 : v1;
    return ReadFile(cgroup->DirOf("memory") + "/" + file, 64).value_or("none");
  }
};

TEST_F(AgentLimits, AreThoseOfTheSpecAndOfAnUpdate) {
  const Made made = Run({.linux_part = R"("resources": {"memory": {"limit": 67108864}})",
                         .script = "echo up; sleep 1000"});
  EXPECT_EQ(ReadUntil(made.out, "up"), "up\n");
  EXPECT_EQ(LimitOf(made.id, "memory.limit_in_bytes", "memory.max"), "67108864\n");
  const auto updated =
      host_->client().Call(protocol::Update{.container = made.id,
                                            .resources_json = R"({"memory": {"limit": 33554432}})"},
                           Soon());
  ASSERT_TRUE(updated) << updated.error().message;
  EXPECT_EQ(LimitOf(made.id, "memory.limit_in_bytes", "memory.max"), "33554432\n");
  EXPECT_EQ(host_->client()
                .Call(protocol::Update{.container = made.id, .resources_json = "{"}, Soon())
                .error()
                .code,
            Code::kInvalidArgument);
}

TEST_F(AgentLimits, OfMemoryKillAndAreToldBeforeTheEnd) {
  const Made made = Run({.linux_part = R"("resources": {"memory": {"limit": 16777216}})",
                         .script = "exec busybox tail /dev/zero"});
  EXPECT_EQ(host_->WaitForExit(made.id), 128U + SIGKILL);
  const auto list = host_->client().Call(protocol::List{}, Soon());
  const auto found =
      std::ranges::find(list->containers, made.id, &protocol::ContainerReport::container);
  ASSERT_NE(found, list->containers.end());
  EXPECT_GT(found->oom_kills, 0U);
}

TEST_F(AgentLimits, AreCounted) {
  const Made made =
      Run({.script = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo up; sleep 1000"});
  EXPECT_EQ(ReadUntil(made.out, "up"), "up\n");
  const auto stats = host_->client().Call(protocol::Stats{.container = made.id}, Soon());
  ASSERT_TRUE(stats) << stats.error().message;
  EXPECT_GT(stats->cpu_usage_ns, 0U);
  EXPECT_GT(stats->memory_usage_bytes, 0U);
  const auto pids = host_->client().Call(protocol::Pids{.container = made.id}, Soon());
  ASSERT_TRUE(pids) << pids.error().message;
  EXPECT_FALSE(pids->pids.empty());
}

TEST_F(AgentLimits, StopAContainerAndLetItGoOn) {
  const Made made = Run({.script = "while :; do echo x; sleep 0.05; done"});
  EXPECT_THAT(ReadUntil(made.out, "x"), testing::HasSubstr("x"));
  const auto paused = host_->client().Call(protocol::Pause{.container = made.id}, Soon());
  ASSERT_TRUE(paused) << paused.error().message;
  EXPECT_EQ(host_->client()
                .Call(protocol::CreateExec{.container = made.id,
                                           .exec = "e",
                                           .process_json = container::Bundle::ProcessOf({}),
                                           .streams = {}},
                      Soon())
                .error()
                .code,
            Code::kFailedPrecondition)
      << "it would not come to its gate";
  ASSERT_TRUE(host_->client().Call(protocol::Resume{.container = made.id}, Soon()));
  EXPECT_THAT(ReadUntil(made.out, "x\nx\nx"), testing::HasSubstr("x\nx\nx"));
  ASSERT_TRUE(host_->client().Call(protocol::Pause{.container = made.id}, Soon()));
  EXPECT_TRUE(host_->client().Call(protocol::Delete{.container = made.id, .exec = ""}, Soon()))
      << "what is frozen can be ended";
}

TEST(AgentStats, OfInterfacesAreThoseOfTheKernelWithoutTheLoopback) {
  const auto all = guest::ParseInterfaces(
      "Inter-|   Receive                                                |  Transmit\n"
      " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets\n"
      "    lo:  1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\n"
      "  eth0: 10 20 30 40 0 0 0 0 50 60 70 80 0 0 0 0\n"
      "garbage\n: 1\nshort: 1\n");
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].name, "eth0");
  EXPECT_EQ(all[0].received_bytes, 10U);
  EXPECT_EQ(all[0].received_dropped, 40U);
  EXPECT_EQ(all[0].sent_bytes, 50U);
  EXPECT_EQ(all[0].sent_dropped, 80U);
  EXPECT_EQ(all[1].name, "short");
}

}  // namespace
}  // namespace gantry::vmm
