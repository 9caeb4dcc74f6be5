// SPDX-License-Identifier: Apache-2.0
#include "core/stats/metrics.h"

#include <bit>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/protowire.h>

#include "tests/unit/os/fake_cgroupfs.h"

namespace gantry::stats {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::SizeIs;

/// A message taken apart: what each field holds, in order.
struct Message {
  explicit Message(std::string_view bytes) {
    ProtoReader in(bytes);
    while (in.Next()) {
      if (in.is_bytes()) {
        texts[in.field()].push_back(in.text());
      } else {
        numbers[in.field()].push_back(in.number());
      }
    }
    EXPECT_TRUE(in.ok());
  }

  uint64_t Number(uint32_t field) const {
    const auto found = numbers.find(field);
    return found == numbers.end() ? 0 : found->second.front();
  }

  Message Sub(uint32_t field, size_t index = 0) const {
    const auto found = texts.find(field);
    EXPECT_TRUE(found != texts.end() && found->second.size() > index) << "field " << field;
    return Message(found == texts.end() ? "" : found->second.at(index));
  }

  std::map<uint32_t, std::vector<uint64_t>> numbers;
  std::map<uint32_t, std::vector<std::string>> texts;
};

TEST(MetricsV1, HaveTheNumbersThatContainerdReads) {
  os::CgroupV1Stats stats;
  stats.pids = os::CgroupPids{.current = 2, .limit = UINT64_MAX};
  stats.cpu = os::CgroupV1Stats::Cpu{.total_ns = 10,
                                     .kernel_ns = 4,
                                     .user_ns = 6,
                                     .per_cpu_ns = {10, 0},
                                     .periods = 1,
                                     .throttled_periods = 2,
                                     .throttled_ns = 3};
  stats.memory.emplace();
  stats.memory->stat = {{"total_inactive_file", 7}, {"total_rss", 8}, {"unknown", 9}};
  stats.memory->usage = {.limit = 1000, .usage = 500, .max = 600, .fail_count = 1};
  stats.memory->oom_kill = 2;
  stats.blkio.emplace();
  stats.blkio->service_bytes = {{"Read", "/dev/vda", 254, 0, 4096}};
  stats.hugetlb = {{"2MB", 1, 2, 3}};
  stats.rdma_limit = {{"mlx4_0", 4, 5}};

  const Message message(EncodeMetrics(stats));

  EXPECT_EQ(message.Sub(1).texts.at(4), std::vector<std::string>{"2MB"});
  EXPECT_EQ(message.Sub(1).Number(3), 3U);
  EXPECT_EQ(message.Sub(2).Number(2), UINT64_MAX);
  EXPECT_EQ(message.Sub(3).Sub(1).Number(1), 10U);
  EXPECT_THAT(message.Sub(3).Sub(1).numbers.at(4), ElementsAre(10U, 0U));
  EXPECT_EQ(message.Sub(3).Sub(2).Number(3), 3U);
  EXPECT_EQ(message.Sub(4).Number(30), 7U);
  EXPECT_EQ(message.Sub(4).Number(19), 8U);
  EXPECT_EQ(message.Sub(4).Sub(33).Number(2), 500U);
  EXPECT_EQ(message.Sub(5).Sub(1).Number(5), 4096U);
  EXPECT_EQ(message.Sub(6).Sub(2).Number(3), 5U);
  EXPECT_EQ(message.Sub(9).Number(3), 2U);
}

TEST(MetricsV2, HaveTheNumbersThatContainerdReads) {
  os::CgroupV2Stats stats;
  stats.cpu = os::CgroupV2Stats::Cpu{
      .stat = {{"usage_usec", 10}, {"nr_bursts", 2}},
      .pressure = os::CgroupV2Stats::Pressure{.some = {.avg10 = 1.5, .total_us = 3}, .full = {}}};
  stats.memory.emplace();
  stats.memory->stat = {{"inactive_file", 7},
                        {"workingset_refault_anon", 1},
                        {"workingset_refault_file", 2},
                        {"pgmajfault", 9}};
  stats.memory->usage = 500;
  stats.memory->limit = 1000;
  stats.memory_events = os::CgroupCounters{{"oom_kill", 2}, {"oom_group_kill", 1}};
  stats.io.emplace();
  stats.io->entries = {{8, 0, 1, 2, 3, 4}};
  stats.hugetlb = {{"2MB", 1, 2, 3}};

  const Message message(EncodeMetrics(stats));

  EXPECT_FALSE(message.texts.contains(1));
  EXPECT_EQ(message.Sub(2).Number(1), 10U);
  EXPECT_EQ(message.Sub(2).Number(8), 2U);
  EXPECT_DOUBLE_EQ(std::bit_cast<double>(message.Sub(2).Sub(7).Sub(1).Number(1)), 1.5);
  EXPECT_EQ(message.Sub(2).Sub(7).Sub(1).Number(4), 3U);
  EXPECT_EQ(message.Sub(4).Number(13), 7U);
  EXPECT_EQ(message.Sub(4).Number(20), 3U);
  EXPECT_EQ(message.Sub(4).Number(19), 9U);
  EXPECT_EQ(message.Sub(4).Number(33), 1000U);
  EXPECT_EQ(message.Sub(6).Sub(1).Number(6), 4U);
  EXPECT_EQ(message.Sub(7).texts.at(3), std::vector<std::string>{"2MB"});
  EXPECT_EQ(message.Sub(8).Number(5), 2U);
  EXPECT_EQ(message.Sub(8).Number(6), 1U);
}

TEST(Metrics, HaveTheTypeOfTheHierarchy) {
  os::FakeCgroupFs v2;
  v2.Put("cgroup.controllers", "");
  v2.Put("c/pids.current", "1\n");
  os::FakeCgroupFs v1;
  v1.Put("pids/c/pids.current", "1\n");

  const auto of_v2 = ReadMetrics(*os::Cgroup::Named(*os::CgroupHierarchy::At(v2.path()), "/c"));
  const auto of_v1 = ReadMetrics(*os::Cgroup::Named(*os::CgroupHierarchy::At(v1.path()), "/c"));
  const auto gone = ReadMetrics(*os::Cgroup::Named(*os::CgroupHierarchy::At(v1.path()), "/d"));

  ASSERT_TRUE(of_v2 && of_v1);
  EXPECT_EQ(of_v2->type_url, "io.containerd.cgroups.v2.Metrics");
  EXPECT_EQ(of_v1->type_url, "io.containerd.cgroups.v1.Metrics");
  EXPECT_EQ(Message(of_v1->value).Sub(2).Number(1), 1U);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Code::kNotFound);
}

}  // namespace
}  // namespace gantry::stats
