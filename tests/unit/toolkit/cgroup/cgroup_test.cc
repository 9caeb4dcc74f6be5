// SPDX-License-Identifier: Apache-2.0
//
// Cgroups by a fake tree: what is found where, records, limits.
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/cgroup/cgroup.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/pidfd.h>

#include "tests/unit/cgroup/fake_cgroupfs.h"

namespace gantry::cgroup {
namespace {

using os::FakeCgroupFs;
using os::IdleProcess;
using os::kBound;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::chrono::milliseconds kSoon{20};

class CgroupFake : public testing::Test {
 protected:
  void MakeV1() {
    for (const char* tree : {"memory", "cpu,cpuacct", "freezer", "pids", "systemd"}) {
      fs_.Put(std::string(tree) + "/cgroup.procs", "");
    }
  }

  void MakeV2() { fs_.Put("cgroup.controllers", "cpu memory pids\n"); }

  CgroupHierarchy Hierarchy() {
    auto out = CgroupHierarchy::At(fs_.path());
    EXPECT_TRUE(out);
    out->SetProcDirForTest(fs_.path() + "/proc");
    return *out;
  }

  FakeCgroupFs fs_;
};

TEST_F(CgroupFake, RecognisesTheThreeLayouts) {
  MakeV1();
  EXPECT_EQ(Hierarchy().mode(), CgroupMode::kV1);

  fs_.Put("unified/cgroup.controllers", "");
  EXPECT_EQ(Hierarchy().mode(), CgroupMode::kHybrid);

  MakeV2();
  EXPECT_EQ(Hierarchy().mode(), CgroupMode::kV2);
}

TEST_F(CgroupFake, TellsWhatAnOciRuntimeFindsHere) {
  EXPECT_EQ(NodeCgroups::At(fs_.path()).mode, CgroupMode::kNone);

  MakeV1();
  EXPECT_EQ(NodeCgroups::At(fs_.path()).mode, CgroupMode::kV1);

  fs_.Put("unified/cgroup.controllers", "hugetlb misc\n");
  const NodeCgroups hybrid = NodeCgroups::At(fs_.path());
  EXPECT_EQ(hybrid.mode, CgroupMode::kHybrid);
  EXPECT_EQ(hybrid.unclaimed, "hugetlb misc");

  MakeV2();
  EXPECT_EQ(NodeCgroups::At(fs_.path()).mode, CgroupMode::kV2);
  EXPECT_EQ(NodeCgroups::At(fs_.path()).unclaimed, "");
}

TEST_F(CgroupFake, AreNowhereOnANodeWithout) {
  const CgroupHierarchy none;
  EXPECT_EQ(none.mode(), CgroupMode::kNone);
  const auto named = Cgroup::Named(none, fs_.path() + "/c");
  ASSERT_TRUE(named) << named.error().message;
  EXPECT_TRUE(named->empty());
  EXPECT_EQ(named->DirOf("memory"), "");

  const auto made = Cgroup::Create(none, fs_.path() + "/c");

  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kNotFound);
  EXPECT_THAT(made.error().message, HasSubstr("no cgroup hierarchy"));
  EXPECT_FALSE(Exists(fs_.path() + "/c")) << "where no hierarchy is";
}

TEST_F(CgroupFake, FindsThoseOfAProcessOnV1) {
  MakeV1();
  fs_.Put("unified/cgroup.controllers", "");
  fs_.Put("proc/42/cgroup",
          "12:misc:/other\n9:name=systemd:/pod/c\n3:memory:/pod/c\n2:cpu,cpuacct:/pod/c (deleted)\n"
          "1:freezer:/\n0::/starter\n");

  const auto cgroup = Cgroup::OfProcess(Hierarchy(), {.pid = 42});

  ASSERT_TRUE(cgroup) << cgroup.error().message;
  EXPECT_FALSE(cgroup->is_unified());
  EXPECT_EQ(cgroup->DirOf("memory"), fs_.path() + "/memory/pod/c");
  EXPECT_EQ(cgroup->DirOf("cpu"), fs_.path() + "/cpu,cpuacct/pod/c");
  EXPECT_EQ(cgroup->DirOf("freezer"), fs_.path() + "/freezer");
  EXPECT_EQ(cgroup->DirOf("misc"), "");
  EXPECT_EQ(cgroup->unified().mount_dir, "");
}

TEST_F(CgroupFake, FindsThatOfAProcessOnV2) {
  MakeV2();
  fs_.Put("proc/42/cgroup", "0::/pod/a:b\n");

  const auto cgroup = Cgroup::OfProcess(Hierarchy(), {.pid = 42});
  const auto absent = Cgroup::OfProcess(Hierarchy(), {.pid = 43});

  ASSERT_TRUE(cgroup);
  EXPECT_TRUE(cgroup->is_unified());
  EXPECT_EQ(cgroup->DirOf("memory"), fs_.path() + "/pod/a:b");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, Code::kNotFound);
}

TEST_F(CgroupFake, AreNotThoseOfWhoHasTheNumberNow) {
  MakeV2();
  fs_.Put(Format("proc/{}/cgroup", getpid()), "0::/another\n");
  const ProcessId self = *Identify({getpid()});
  const ProcessId before{.pid = self.pid, .start_time = self.start_time - 1};

  EXPECT_TRUE(Cgroup::OfProcess(Hierarchy(), self));
  const auto reused = Cgroup::OfProcess(Hierarchy(), before);

  ASSERT_FALSE(reused);
  EXPECT_EQ(reused.error().code, Code::kNotFound);
}

TEST_F(CgroupFake, ComesBackFromItsRecord) {
  MakeV1();
  const auto v1 = Cgroup::Named(Hierarchy(), "/pod//c\t1/");
  ASSERT_TRUE(v1);

  const auto again = Cgroup::Decode(v1->Encode());

  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, *v1);
  EXPECT_TRUE(Cgroup::Decode("")->empty());
}

TEST_F(CgroupFake, RefusesRecordsAndPathsThatLeadElsewhere) {
  MakeV1();
  for (const char* text :
       {"memory", "memory\t/a", "memory\ta\t/b", "memory\t/a\tb", "memory\t/a\t/b/../../c"}) {
    EXPECT_FALSE(Cgroup::Decode(text)) << text;
  }
  EXPECT_FALSE(Cgroup::Named(Hierarchy(), "relative"));
  EXPECT_FALSE(Cgroup::Named(Hierarchy(), "/a/../b"));
}

TEST_F(CgroupFake, NeverTouchesARoot) {
  MakeV1();
  const auto root = Cgroup::Named(Hierarchy(), "/");
  ASSERT_TRUE(root);

  for (const Status& status :
       {root->Freeze(kSoon), root->Kill(kSoon), root->Signal(SIGTERM), root->Update({})}) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::kFailedPrecondition);
  }
  EXPECT_TRUE(root->Remove(kSoon));
  EXPECT_TRUE(Exists(fs_.path() + "/memory"));
  EXPECT_FALSE(root->Exists());
}

TEST_F(CgroupFake, ListsProcessesBelowOnce) {
  MakeV2();
  fs_.Put("c/cgroup.procs", "7\n5\n0\n");
  fs_.Put("c/a/cgroup.procs", "9\n7\n");
  const auto cgroup = Cgroup::Named(Hierarchy(), "/c");
  ASSERT_TRUE(cgroup);

  const auto procs = cgroup->Procs();

  ASSERT_TRUE(procs);
  EXPECT_THAT(*procs, ElementsAre(5, 7, 9));
}

TEST_F(CgroupFake, RefusesToStopItsCaller) {
  MakeV2();
  fs_.Put("c/cgroup.procs", std::to_string(getpid()) + "\n");
  fs_.Put("c/cgroup.kill", "");
  const auto cgroup = Cgroup::Named(Hierarchy(), "/c");
  ASSERT_TRUE(cgroup);

  const Status killed = cgroup->Kill(kSoon);

  ASSERT_FALSE(killed);
  EXPECT_EQ(killed.error().code, Code::kFailedPrecondition);
  EXPECT_EQ(fs_.Get("c/cgroup.kill"), "");
}

TEST_F(CgroupFake, FreezeOnV2WaitsForTheKernel) {
  MakeV2();
  fs_.Put("c/cgroup.procs", "");
  fs_.Put("c/cgroup.freeze", "0");
  fs_.Put("c/cgroup.events", "populated 1\nfrozen 1\n");
  const auto cgroup = Cgroup::Named(Hierarchy(), "/c");
  ASSERT_TRUE(cgroup);

  const Status frozen = cgroup->Freeze(kSoon);
  EXPECT_EQ(fs_.Get("c/cgroup.freeze"), "1");
  fs_.Put("c/cgroup.events", "populated 1\nfrozen 0\n");
  const Status late = cgroup->Freeze(kSoon);

  EXPECT_TRUE(frozen);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kDeadlineExceeded);
  EXPECT_EQ(fs_.Get("c/cgroup.freeze"), "0");
}

class CgroupLimits : public CgroupFake {
 protected:
  // A cgroup `c` in which `files` exist, empty.
  Cgroup With(std::initializer_list<const char*> files) {
    for (const char* file : files) {
      fs_.Put(file, "");
    }
    const auto cgroup = Cgroup::Named(Hierarchy(), "/c");
    EXPECT_TRUE(cgroup);
    return *cgroup;
  }
};

TEST_F(CgroupLimits, AreConvertedForV2) {
  MakeV2();
  const Cgroup cgroup = With({"c/memory.max", "c/memory.swap.max", "c/memory.low", "c/cpu.weight",
                              "c/cpu.max", "c/cpu.max.burst", "c/cpuset.cpus", "c/pids.max",
                              "c/io.weight", "c/hugetlb.2MB.max", "c/memory.high"});
  CgroupResources limits;
  limits.memory = {.limit_bytes = 1000, .reservation_bytes = 500, .swap_bytes = 1500};
  limits.cpu = {.shares = 1024, .quota_us = 50000, .period_us = 100000, .burst_us = 7};
  limits.cpu.cpus = "0-1";
  limits.pids_limit = -1;
  limits.blkio_weight = 1000;
  limits.hugetlb_bytes = {{"2MB", 4096}};
  limits.unified = {{"memory.high", "900"}};

  const Status done = cgroup.Update(limits);

  // pids.max of "max" is written where the file exists.
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(fs_.Get("c/memory.max"), "1000");
  EXPECT_EQ(fs_.Get("c/memory.swap.max"), "500");
  EXPECT_EQ(fs_.Get("c/memory.low"), "500");
  EXPECT_EQ(fs_.Get("c/cpu.weight"), "100");
  EXPECT_EQ(fs_.Get("c/cpu.max"), "50000 100000");
  EXPECT_EQ(fs_.Get("c/cpu.max.burst"), "7");
  EXPECT_EQ(fs_.Get("c/cpuset.cpus"), "0-1");
  EXPECT_EQ(fs_.Get("c/pids.max"), "max");
  EXPECT_EQ(fs_.Get("c/io.weight"), "10000");
  EXPECT_EQ(fs_.Get("c/hugetlb.2MB.max"), "4096");
  EXPECT_EQ(fs_.Get("c/memory.high"), "900");
}

TEST_F(CgroupLimits, OnV2KeepTheQuotaWhenOnlyThePeriodIsGiven) {
  MakeV2();
  fs_.Put("c/cpu.max", "max 100000\n");
  const Cgroup cgroup = With({});
  CgroupResources limits;
  limits.cpu.period_us = 200000;

  ASSERT_TRUE(cgroup.Update(limits));

  EXPECT_THAT(fs_.Get("c/cpu.max"), testing::StartsWith("max 200000"));
}

TEST_F(CgroupLimits, OnV2MissOnlyFilesThatWouldLimit) {
  MakeV2();
  const Cgroup cgroup = With({"c/memory.max"});
  CgroupResources same;
  same.memory = {.limit_bytes = 1000, .reservation_bytes = {}, .swap_bytes = 1000};
  CgroupResources more = same;
  more.memory.swap_bytes = 2000;

  EXPECT_TRUE(cgroup.Update(same));
  const Status refused = cgroup.Update(more);

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kNotFound);
  EXPECT_THAT(refused.error().message, HasSubstr("memory.swap.max"));
}

TEST_F(CgroupLimits, OnV2RefuseWhatIsBelowTheMemoryInUseWhenAsked) {
  MakeV2();
  fs_.Put("c/memory.current", "50000\n");
  const Cgroup cgroup = With({"c/memory.max", "c/pids.max"});
  CgroupResources limits;
  limits.memory.limit_bytes = 49999;
  limits.memory.check_before_update = true;
  limits.pids_limit = 7;

  const Status refused = cgroup.Update(limits);

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kFailedPrecondition);
  EXPECT_EQ(fs_.Get("c/memory.max"), "") << "nothing is changed";
  EXPECT_EQ(fs_.Get("c/pids.max"), "");
  limits.memory.limit_bytes = 50000;
  EXPECT_TRUE(cgroup.Update(limits));
  EXPECT_EQ(fs_.Get("c/memory.max"), "50000");
}

TEST_F(CgroupLimits, OnV2AreSetBelowTheMemoryInUseWhenNotAsked) {
  MakeV2();
  fs_.Put("c/memory.current", "50000\n");
  const Cgroup cgroup = With({"c/memory.max"});
  CgroupResources limits;
  limits.memory.limit_bytes = 49999;

  EXPECT_TRUE(cgroup.Update(limits));

  EXPECT_EQ(fs_.Get("c/memory.max"), "49999");
}

TEST_F(CgroupLimits, OnV2RefuseSwapBelowMemoryAndForeignFiles) {
  MakeV2();
  const Cgroup cgroup = With({"c/memory.max", "c/memory.swap.max"});
  CgroupResources swap;
  swap.memory = {.limit_bytes = 1000, .reservation_bytes = {}, .swap_bytes = 999};
  CgroupResources outside;
  outside.unified = {{"../cgroup.procs", "1"}};

  EXPECT_FALSE(cgroup.Update(swap));
  EXPECT_FALSE(cgroup.Update(outside));
}

TEST_F(CgroupLimits, OnV1TakeTheirNames) {
  MakeV1();
  fs_.Put("memory/c/memory.limit_in_bytes", "9223372036854771712\n");
  const Cgroup cgroup =
      With({"memory/c/memory.memsw.limit_in_bytes", "memory/c/memory.soft_limit_in_bytes",
            "cpu,cpuacct/c/cpu.shares", "cpu,cpuacct/c/cpu.cfs_quota_us", "pids/c/pids.max"});
  CgroupResources limits;
  limits.memory = {.limit_bytes = -1, .reservation_bytes = 500, .swap_bytes = {}};
  limits.cpu.shares = 2;
  limits.cpu.quota_us = -1;
  limits.pids_limit = 100;

  const Status done = cgroup.Update(limits);

  ASSERT_TRUE(done) << done.error().message;
  EXPECT_THAT(fs_.Get("memory/c/memory.limit_in_bytes"), testing::StartsWith("-1"));
  EXPECT_EQ(fs_.Get("memory/c/memory.memsw.limit_in_bytes"), "-1");
  EXPECT_EQ(fs_.Get("memory/c/memory.soft_limit_in_bytes"), "500");
  EXPECT_EQ(fs_.Get("cpu,cpuacct/c/cpu.shares"), "2");
  EXPECT_EQ(fs_.Get("cpu,cpuacct/c/cpu.cfs_quota_us"), "-1");
  EXPECT_EQ(fs_.Get("pids/c/pids.max"), "100");
}

TEST_F(CgroupLimits, OnV1RefuseV2Files) {
  MakeV1();
  CgroupResources limits;
  limits.unified = {{"memory.high", "900"}};

  const Status refused = With({}).Update(limits);

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
}

TEST(CgroupWeights, SpanTheirRanges) {
  constexpr auto kToday = CpuWeightFormula::kQuadratic;
  EXPECT_EQ(WeightFromShares(1, kToday), 1U);
  EXPECT_EQ(WeightFromShares(2, kToday), 1U);
  EXPECT_EQ(WeightFromShares(256, kToday), 35U);
  EXPECT_EQ(WeightFromShares(1024, kToday), 100U);
  EXPECT_EQ(WeightFromShares(2048, kToday), 174U);
  EXPECT_EQ(WeightFromShares(262144, kToday), 10000U);
  EXPECT_EQ(WeightFromShares(1'000'000, kToday), 10000U);
  constexpr auto kBefore = CpuWeightFormula::kLinear;
  EXPECT_EQ(WeightFromShares(1, kBefore), 1U);
  EXPECT_EQ(WeightFromShares(2, kBefore), 1U);
  EXPECT_EQ(WeightFromShares(1024, kBefore), 39U);
  EXPECT_EQ(WeightFromShares(262144, kBefore), 10000U);
  EXPECT_EQ(WeightFromBlkio(10), 1U);
  EXPECT_EQ(WeightFromBlkio(1000), 10000U);
}

TEST(FormulaThatMakes, IsToldByTheWeight) {
  EXPECT_EQ(FormulaThatMakes(100, 1024), CpuWeightFormula::kQuadratic);
  EXPECT_EQ(FormulaThatMakes(101, 1024), CpuWeightFormula::kQuadratic);
  EXPECT_EQ(FormulaThatMakes(39, 1024), CpuWeightFormula::kLinear);
  EXPECT_EQ(FormulaThatMakes(60, 1024), std::nullopt);
}

TEST(FormulaThatMakes, IsNotToldWhereBothMakeTheSame) {
  EXPECT_EQ(FormulaThatMakes(1, 2), std::nullopt);
  EXPECT_EQ(FormulaThatMakes(10000, 262144), std::nullopt);
}

}  // namespace
}  // namespace gantry::cgroup
