// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/cgroup/statistics.h>

#include "tests/unit/cgroup/fake_cgroupfs.h"

namespace gantry::cgroup {
namespace {

using os::FakeCgroupFs;
using testing::IsEmpty;
using testing::SizeIs;

TEST(CgroupStatsV2, ReadsWhatThereIs) {
  FakeCgroupFs fs;
  fs.Put("cgroup.controllers", "");
  fs.Put("c/pids.current", "3\n");
  fs.Put("c/pids.max", "max\n");
  fs.Put("c/cpu.stat", "usage_usec 10\nuser_usec 6\nsystem_usec 4\n");
  fs.Put("c/cpu.pressure",
         "some avg10=1.50 avg60=2.00 avg300=0.25 total=77\nfull avg10=0.00 total=5\n");
  fs.Put("c/memory.stat", "anon 100\nfile 200\n");
  fs.Put("c/memory.current", "300\n");
  fs.Put("c/memory.max", "max\n");
  fs.Put("c/memory.events", "low 0\noom 2\noom_kill 1\n");
  fs.Put("c/io.stat", "8:16 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6\n7:0 \n");
  fs.Put("c/hugetlb.2MB.current", "4096\n");
  fs.Put("c/hugetlb.2MB.max", "max\n");
  fs.Put("c/hugetlb.2MB.events", "max 9\n");
  fs.Put("c/hugetlb.2MB.rsvd.current", "0\n");
  fs.Put("c/rdma.current", "mlx4_0 hca_handle=2 hca_object=max\n");
  const auto hierarchy = CgroupHierarchy::At(fs.path());
  ASSERT_TRUE(hierarchy);

  const auto stats = ReadCgroupV2Stats(*Cgroup::Named(*hierarchy, "/c"));
  const auto gone = ReadCgroupV2Stats(*Cgroup::Named(*hierarchy, "/gone"));

  ASSERT_TRUE(stats) << stats.error().message;
  EXPECT_EQ(stats->pids->current, 3U);
  EXPECT_EQ(stats->pids->limit, UINT64_MAX);
  EXPECT_EQ(Counter(stats->cpu->stat, "user_usec"), 6U);
  EXPECT_DOUBLE_EQ(stats->cpu->pressure->some.avg10, 1.5);
  EXPECT_DOUBLE_EQ(stats->cpu->pressure->some.avg300, 0.25);
  EXPECT_EQ(stats->cpu->pressure->full.total_us, 5U);
  EXPECT_EQ(stats->memory->usage, 300U);
  EXPECT_EQ(stats->memory->limit, UINT64_MAX);
  EXPECT_FALSE(stats->memory->pressure);
  EXPECT_EQ(Counter(*stats->memory_events, "oom_kill"), 1U);
  ASSERT_THAT(stats->io->entries, SizeIs(1));
  EXPECT_EQ(stats->io->entries[0].minor, 16U);
  EXPECT_EQ(stats->io->entries[0].write_ios, 4U);
  ASSERT_THAT(stats->hugetlb, SizeIs(1));
  EXPECT_EQ(stats->hugetlb[0].fail_count, 9U);
  ASSERT_THAT(stats->rdma_current, SizeIs(1));
  EXPECT_EQ(stats->rdma_current[0].hca_objects, UINT32_MAX);
  EXPECT_EQ(ReadMemoryUse(*Cgroup::Named(*hierarchy, "/c")).value_or(0), 300U);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Code::kNotFound);
}

TEST(CgroupStatsV1, ReadsWhatThereIs) {
  FakeCgroupFs fs;
  fs.Put("memory/c/memory.stat", "rss 5\ntotal_rss 6\n");
  fs.Put("memory/c/memory.usage_in_bytes", "100\n");
  fs.Put("memory/c/memory.memsw.failcnt", "4\n");
  fs.Put("memory/c/memory.oom_control", "oom_kill_disable 0\nunder_oom 1\noom_kill 3\n");
  fs.Put("cpu,cpuacct/c/cpuacct.usage", "12345\n");
  fs.Put("cpu,cpuacct/c/cpuacct.usage_percpu", "12000 345 \n");
  fs.Put("cpu,cpuacct/c/cpu.stat", "nr_periods 1\nnr_throttled 2\nthrottled_time 3\n");
  fs.Put("blkio/c/blkio.throttle.io_service_bytes_recursive",
         "250:0 Read 10\n250:0 Write 20\nTotal 30\n");
  fs.Put("freezer/c/freezer.state", "THAWED\n");
  const auto hierarchy = CgroupHierarchy::At(fs.path());
  ASSERT_TRUE(hierarchy);

  const auto stats = ReadCgroupV1Stats(*Cgroup::Named(*hierarchy, "/c"));

  ASSERT_TRUE(stats) << stats.error().message;
  EXPECT_EQ(Counter(stats->memory->stat, "total_rss"), 6U);
  EXPECT_EQ(stats->memory->usage.usage, 100U);
  EXPECT_EQ(stats->memory->swap.fail_count, 4U);
  EXPECT_EQ(stats->memory->oom_kill, 3U);
  EXPECT_EQ(stats->cpu->total_ns, 12345U);
  EXPECT_THAT(stats->cpu->per_cpu_ns, testing::ElementsAre(12000U, 345U));
  EXPECT_EQ(stats->cpu->throttled_ns, 3U);
  ASSERT_THAT(stats->blkio->service_bytes, SizeIs(2));
  EXPECT_EQ(stats->blkio->service_bytes[1].op, "Write");
  EXPECT_EQ(stats->blkio->service_bytes[1].major, 250U);
  EXPECT_THAT(stats->blkio->serviced, IsEmpty());
  EXPECT_FALSE(stats->pids);
  EXPECT_EQ(ReadMemoryUse(*Cgroup::Named(*hierarchy, "/c")).value_or(0), 100U);
}

}  // namespace
}  // namespace gantry::cgroup
