// SPDX-License-Identifier: Apache-2.0
//
// Cgroups of the kernel's own trees, as root: v1 where the node has it, v2 by
// the node's v2 tree (on a hybrid node it has no controllers, but does freeze
// and kill).
#include <sys/wait.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/cgroup/cgroup.h>
#include <gantry/toolkit/cgroup/statistics.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/pidfd.h>

#include "tests/unit/cgroup/fake_cgroupfs.h"
#include "tests/unit/toolkit/cgroup/kernel_cgroup.h"

namespace gantry::cgroup {
namespace {

using os::IdleProcess;
using os::kBound;
using testing::Contains;
using testing::ElementsAre;

INSTANTIATE_TEST_SUITE_P(Trees, KernelCgroup, testing::Bool(), TreeName);

TEST_P(KernelCgroup, HoldsTheProcessesThatAreAdded) {
  const IdleProcess process;

  ASSERT_TRUE(cgroup_.AddProcess(process.pid()));

  const auto procs = cgroup_.Procs();
  ASSERT_TRUE(procs);
  EXPECT_THAT(*procs, ElementsAre(process.pid()));
  const auto found = Cgroup::OfProcess(hierarchy_, *Identify({process.pid()}));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(*found, cgroup_);
}

TEST_P(KernelCgroup, FreezesAndThaws) {
  const IdleProcess process;
  ASSERT_TRUE(cgroup_.AddProcess(process.pid()));

  const Status frozen = cgroup_.Freeze(kBound);
  ASSERT_TRUE(frozen) << frozen.error().message;
  EXPECT_EQ(cgroup_.Frozen().value_or(false), true);
  EXPECT_TRUE(cgroup_.Freeze(kBound));
  const Status thawed = cgroup_.Thaw(kBound);

  ASSERT_TRUE(thawed) << thawed.error().message;
  EXPECT_EQ(cgroup_.Frozen().value_or(true), false);
  EXPECT_TRUE(process.Alive());
}

TEST_P(KernelCgroup, KillsWhatIsFrozenAndBelow) {
  IdleProcess process;
  IdleProcess deeper;
  const auto below = Cgroup::Create(
      hierarchy_,
      (GetParam() ? cgroup_.unified().path : cgroup_.v1().at("freezer").path) + "/below");
  ASSERT_TRUE(below) << below.error().message;
  ASSERT_TRUE(cgroup_.AddProcess(process.pid()));
  ASSERT_TRUE(below->AddProcess(deeper.pid()));
  ASSERT_TRUE(cgroup_.Freeze(kBound));

  const Status killed = cgroup_.Kill(kBound);

  ASSERT_TRUE(killed) << killed.error().message;
  EXPECT_EQ(WTERMSIG(process.Wait()), SIGKILL);
  EXPECT_EQ(WTERMSIG(deeper.Wait()), SIGKILL);
  EXPECT_TRUE(cgroup_.Procs()->empty());
  EXPECT_TRUE(cgroup_.Remove(kBound));
  EXPECT_TRUE(cgroup_.Kill(kBound));
  EXPECT_TRUE(cgroup_.Remove(kBound));
}

TEST_P(KernelCgroup, SignalsEachProcess) {
  IdleProcess one;
  IdleProcess two;
  ASSERT_TRUE(cgroup_.AddProcess(one.pid()));
  ASSERT_TRUE(cgroup_.AddProcess(two.pid()));

  ASSERT_TRUE(cgroup_.Signal(SIGTERM));

  EXPECT_EQ(WTERMSIG(one.Wait()), SIGTERM);
  EXPECT_EQ(WTERMSIG(two.Wait()), SIGTERM);
}

TEST_P(KernelCgroup, SaysThatItIsBusy) {
  const IdleProcess process;
  ASSERT_TRUE(cgroup_.AddProcess(process.pid()));

  const Status removed = cgroup_.Remove(std::chrono::milliseconds(5));

  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().code, Code::kFailedPrecondition);
}

TEST_P(KernelCgroup, GivesStatistics) {
  const IdleProcess process;
  ASSERT_TRUE(cgroup_.AddProcess(process.pid()));

  if (GetParam()) {
    const auto stats = ReadCgroupV2Stats(cgroup_);
    ASSERT_TRUE(stats) << stats.error().message;
    ASSERT_TRUE(stats->cpu);
    EXPECT_TRUE(stats->cpu->stat.contains("usage_usec"));
  } else {
    const auto stats = ReadCgroupV1Stats(cgroup_);
    ASSERT_TRUE(stats) << stats.error().message;
    ASSERT_TRUE(stats->pids && stats->memory && stats->cpu);
    EXPECT_EQ(stats->pids->current, 1U);
    EXPECT_EQ(stats->pids->limit, UINT64_MAX);
    EXPECT_GT(Counter(stats->memory->stat, "hierarchical_memory_limit"), 0U);
    EXPECT_FALSE(stats->cpu->per_cpu_ns.empty());
  }
}

class KernelCgroupV1 : public KernelCgroup {};

INSTANTIATE_TEST_SUITE_P(Trees, KernelCgroupV1, testing::Values(false), TreeName);

TEST_P(KernelCgroupV1, RaisesAndLowersMemoryWithSwap) {
  CgroupResources limits;
  limits.memory = {.limit_bytes = 64 << 20, .reservation_bytes = {}, .swap_bytes = 128 << 20};
  const Status first = cgroup_.Update(limits);
  if (!first && first.error().code == Code::kNotFound) {
    GTEST_SKIP() << "the kernel does not account swap";
  }
  ASSERT_TRUE(first) << first.error().message;

  for (const auto& [memory, swap] : std::initializer_list<std::pair<int64_t, int64_t>>{
           {256 << 20, 256 << 20}, {32 << 20, 40 << 20}, {-1, -1}, {16 << 20, -1}}) {
    limits.memory = {.limit_bytes = memory, .reservation_bytes = {}, .swap_bytes = swap};
    const Status done = cgroup_.Update(limits);
    ASSERT_TRUE(done) << done.error().message;
    const auto stats = ReadCgroupV1Stats(cgroup_);
    ASSERT_TRUE(stats && stats->memory);
    EXPECT_TRUE(memory < 0 || stats->memory->usage.limit == static_cast<uint64_t>(memory));
    EXPECT_TRUE(swap < 0 || stats->memory->swap.limit == static_cast<uint64_t>(swap));
  }
}

TEST_P(KernelCgroupV1, ChangesQuotaPeriodAndBurstInAnyDirection) {
  CgroupResources limits;
  for (const uint64_t scale : {1, 8, 2}) {
    limits.cpu = {.shares = 512 * scale,
                  .quota_us = static_cast<int64_t>(10'000 * scale),
                  .period_us = 20'000 * scale,
                  .burst_us = 5'000 * scale};
    const Status done = cgroup_.Update(limits);
    ASSERT_TRUE(done) << done.error().message;
    const auto quota = ReadFile(cgroup_.DirOf("cpu") + "/cpu.cfs_quota_us", 100);
    EXPECT_EQ(quota.value_or(""), std::to_string(10'000 * scale) + "\n");
  }
  limits.cpu = {.shares = {}, .quota_us = 10'000'000'000'000'000, .period_us = {}};
  const Status refused = cgroup_.Update(limits);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace gantry::cgroup
