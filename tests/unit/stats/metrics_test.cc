// SPDX-License-Identifier: Apache-2.0
#include "core/stats/metrics.h"

#include <bit>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/protowire.h>

#include "tests/unit/cgroup/fake_cgroupfs.h"

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
  cgroup::CgroupV1Stats stats;
  stats.pids = cgroup::CgroupPids{.current = 2, .limit = UINT64_MAX};
  stats.cpu = cgroup::CgroupV1Stats::Cpu{.total_ns = 10,
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
  cgroup::CgroupV2Stats stats;
  stats.cpu = cgroup::CgroupV2Stats::Cpu{.stat = {{"usage_usec", 10}, {"nr_bursts", 2}},
                                         .pressure = cgroup::CgroupV2Stats::Pressure{
                                             .some = {.avg10 = 1.5, .total_us = 3}, .full = {}}};
  stats.memory.emplace();
  stats.memory->stat = {{"inactive_file", 7},
                        {"workingset_refault_anon", 1},
                        {"workingset_refault_file", 2},
                        {"pgmajfault", 9}};
  stats.memory->usage = 500;
  stats.memory->limit = 1000;
  stats.memory_events = cgroup::CgroupCounters{{"oom_kill", 2}, {"oom_group_kill", 1}};
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

/// What a backend has measured.
ContainerMetrics Measured() {
  ContainerMetrics metrics;
  metrics.cpu = {.usage_ns = 7'654'321, .user_ns = 4'000, .system_ns = 3'000};
  metrics.memory = {.usage_bytes = 40'000,
                    .limit_bytes = 64'000,
                    .anonymous_bytes = 30'000,
                    .inactive_file_bytes = 5'000,
                    .page_faults = 9,
                    .major_page_faults = 8,
                    .oom_kills = 1};
  metrics.pids.current = 3;
  metrics.devices = {
      {.major = 254, .minor = 1, .read_bytes = 10, .written_bytes = 20, .reads = 30, .writes = 40}};
  metrics.interfaces = {{.name = "eth0\xff",
                         .received = {.bytes = 1, .packets = 2, .errors = 3, .dropped = 4},
                         .sent = {.bytes = 5, .packets = 6, .errors = 7, .dropped = 8}}};
  return metrics;
}

std::vector<uint32_t> FieldsOf(const Message& message) {
  std::set<uint32_t> fields;
  for (const auto& [field, values] : message.numbers) {
    fields.insert(field);
  }
  for (const auto& [field, values] : message.texts) {
    fields.insert(field);
  }
  return {fields.begin(), fields.end()};
}

void ExpectTraffic(const Message& interface) {
  EXPECT_THAT(interface.texts.at(1), ElementsAre("eth0\\xff")) << "Go refuses what is no UTF-8";
  for (uint32_t field = 2; field <= 9; ++field) {
    EXPECT_EQ(interface.Number(field), field - 1);
  }
}

TEST(MeasuredMetrics, HaveTheNumbersThatContainerdReadsInV1) {
  const auto encoded = Encode(Measured(), cgroup::CgroupMode::kHybrid);
  ASSERT_TRUE(encoded);
  EXPECT_EQ(encoded->type_url, "io.containerd.cgroups.v1.Metrics");
  const Message message(encoded->value);
  EXPECT_EQ(message.Sub(2).Number(1), 3U);
  EXPECT_EQ(message.Sub(2).Number(2), UINT64_MAX);
  const Message cpu = message.Sub(3).Sub(1);
  EXPECT_EQ(cpu.Number(1), 7'654'321U);
  EXPECT_EQ(cpu.Number(2), 3'000U);
  EXPECT_EQ(cpu.Number(3), 4'000U);
  const Message memory = message.Sub(4);
  EXPECT_EQ(memory.Number(19), 30'000U);
  EXPECT_EQ(memory.Number(26), 9U);
  EXPECT_EQ(memory.Number(27), 8U);
  EXPECT_EQ(memory.Number(30), 5'000U);
  EXPECT_EQ(memory.Sub(33).Number(1), 64'000U);
  EXPECT_EQ(memory.Sub(33).Number(2), 40'000U);
  const Message io = message.Sub(5);
  EXPECT_EQ(io.Sub(1, 0).texts.at(1), std::vector<std::string>{"Read"});
  EXPECT_EQ(io.Sub(1, 0).Number(3), 254U);
  EXPECT_EQ(io.Sub(1, 0).Number(5), 10U);
  EXPECT_EQ(io.Sub(1, 1).Number(5), 20U);
  EXPECT_EQ(io.Sub(2, 0).Number(5), 30U);
  EXPECT_EQ(io.Sub(2, 1).Number(5), 40U);
  ExpectTraffic(message.Sub(7));
  EXPECT_EQ(message.Sub(9).Number(3), 1U);
}

TEST(MeasuredMetrics, HaveTheNumbersThatContainerdReadsInV2) {
  const auto encoded = Encode(Measured(), cgroup::CgroupMode::kV2);
  ASSERT_TRUE(encoded);
  EXPECT_EQ(encoded->type_url, "io.containerd.cgroups.v2.Metrics");
  const Message message(encoded->value);
  EXPECT_EQ(message.Sub(1).Number(1), 3U);
  EXPECT_EQ(message.Sub(1).Number(2), UINT64_MAX);
  EXPECT_EQ(message.Sub(2).Number(1), 7'654U);
  EXPECT_EQ(message.Sub(2).Number(2), 4U);
  EXPECT_EQ(message.Sub(2).Number(3), 3U);
  const Message memory = message.Sub(4);
  EXPECT_EQ(memory.Number(1), 30'000U);
  EXPECT_EQ(memory.Number(13), 5'000U);
  EXPECT_EQ(memory.Number(18), 9U);
  EXPECT_EQ(memory.Number(19), 8U);
  EXPECT_EQ(memory.Number(32), 40'000U);
  EXPECT_EQ(memory.Number(33), 64'000U);
  const Message io = message.Sub(6).Sub(1);
  EXPECT_EQ(io.Number(1), 254U);
  EXPECT_EQ(io.Number(3), 10U);
  EXPECT_EQ(io.Number(6), 40U);
  EXPECT_EQ(message.Sub(8).Number(5), 1U);
  ExpectTraffic(message.Sub(9));
}

// Clients take `CPU.Throttling`, `Blkio`, `Io` and so on as there.
TEST(MeasuredMetrics, HaveAllParts) {
  const auto v1 = Encode({}, cgroup::CgroupMode::kV1);
  const auto v2 = Encode({}, cgroup::CgroupMode::kV2);
  ASSERT_TRUE(v1 && v2);
  EXPECT_THAT(FieldsOf(Message(v1->value)), ElementsAre(2U, 3U, 4U, 5U, 9U));
  EXPECT_THAT(FieldsOf(Message(v1->value).Sub(3)), ElementsAre(1U, 2U));
  EXPECT_THAT(FieldsOf(Message(v1->value).Sub(4)), ElementsAre(33U, 34U, 35U, 36U));
  EXPECT_THAT(FieldsOf(Message(v2->value)), ElementsAre(1U, 2U, 4U, 6U, 8U));
}

// containerd subtracts what is used from the limit: it takes 0 for one, and what is left for
// the largest number there is.
TEST(MeasuredMetrics, HaveALimitAlways) {
  EXPECT_EQ(Message(Encode({}, cgroup::CgroupMode::kV1)->value).Sub(4).Sub(33).Number(1),
            UINT64_MAX);
  EXPECT_EQ(Message(Encode({}, cgroup::CgroupMode::kV2)->value).Sub(4).Number(33), UINT64_MAX);
}

TEST(MeasuredMetrics, AreNotWithoutEnd) {
  ContainerMetrics metrics;
  metrics.devices.resize(ContainerMetrics::kMost + 1);
  const auto encoded = Encode(metrics, cgroup::CgroupMode::kV2);
  ASSERT_FALSE(encoded);
  EXPECT_EQ(encoded.error().code, Code::kResourceExhausted);
}

TEST(Metrics, HaveTheTypeOfTheHierarchy) {
  os::FakeCgroupFs v2;
  v2.Put("cgroup.controllers", "");
  v2.Put("c/pids.current", "1\n");
  os::FakeCgroupFs v1;
  v1.Put("pids/c/pids.current", "1\n");

  const auto of_v2 =
      ReadMetrics(*cgroup::Cgroup::Named(*cgroup::CgroupHierarchy::At(v2.path()), "/c"));
  const auto of_v1 =
      ReadMetrics(*cgroup::Cgroup::Named(*cgroup::CgroupHierarchy::At(v1.path()), "/c"));
  const auto gone =
      ReadMetrics(*cgroup::Cgroup::Named(*cgroup::CgroupHierarchy::At(v1.path()), "/d"));

  ASSERT_TRUE(of_v2 && of_v1);
  EXPECT_EQ(of_v2->type_url, "io.containerd.cgroups.v2.Metrics");
  EXPECT_EQ(of_v1->type_url, "io.containerd.cgroups.v1.Metrics");
  EXPECT_EQ(Message(of_v1->value).Sub(2).Number(1), 1U);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Code::kNotFound);
}

}  // namespace
}  // namespace gantry::stats
