// SPDX-License-Identifier: Apache-2.0
//
// The kernel's numbers, in trees of plain files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/cgroup/counters.h>
#include <gantry/toolkit/cgroup/host_limits.h>

#include "tests/unit/cgroup/fake_cgroupfs.h"

namespace gantry::cgroup {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// `name` in a tree, with those above it.
std::string MakeCgroup(const os::FakeCgroupFs& files, const std::string& name) {
  for (size_t slash = name.find('/'); slash != std::string::npos;
       slash = name.find('/', slash + 1)) {
    files.Put(name.substr(0, slash) + "/cgroup.procs", "");
  }
  files.Put(name + "/cgroup.procs", "");
  return files.path() + "/" + name;
}

TEST(CgroupCountersV1, IsADirectoryForEachController) {
  const os::FakeCgroupFs files;
  const CgroupDirs dirs = {MakeCgroup(files, "cpu/pod/one"), MakeCgroup(files, "cpuacct/pod/one"),
                           MakeCgroup(files, "memory/pod/one")};
  files.Put("cpu/pod/one/cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n");
  files.Put("cpuacct/pod/one/cpuacct.usage", "123456789\n");
  files.Put("memory/pod/one/memory.limit_in_bytes", "9223372036854771712\n");
  files.Put("memory/pod/memory.limit_in_bytes", "64000\n");
  files.Put("memory/memory.limit_in_bytes", "9223372036854771712\n");
  files.Put("memory/pod/one/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  EXPECT_EQ(CpuTimeNs(dirs), 123456789U);
  EXPECT_EQ(MemoryLimitBytes(dirs), 64000U) << "the pod's";
  EXPECT_EQ(OomKills(dirs), 2U);
}

TEST(CgroupCountersV2, IsOneDirectory) {
  const os::FakeCgroupFs files;
  const CgroupDirs dirs = {MakeCgroup(files, "pod/one")};
  files.Put("pod/one/cgroup.controllers", "memory pids\n");
  files.Put("pod/one/cpu.stat", "usage_usec 1234\nuser_usec 1000\nsystem_usec 234\n");
  files.Put("pod/one/memory.max", "96000\n");
  files.Put("pod/memory.max", "max\n");
  files.Put("pod/one/memory.events", "low 0\nhigh 0\nmax 3\noom 1\noom_kill 1\noom_group_kill 0\n");
  EXPECT_EQ(CpuTimeNs(dirs), 1234000U);
  EXPECT_EQ(MemoryLimitBytes(dirs), 96000U) << "its own";
  EXPECT_EQ(OomKills(dirs), 1U);
}

TEST(CgroupCounters, HasNoNumbersWhereItIsGone) {
  const CgroupDirs dirs = {"/nowhere/at/all"};
  EXPECT_FALSE(CpuTimeNs(dirs));
  EXPECT_EQ(MemoryLimitBytes(dirs), UINT64_MAX);
  EXPECT_EQ(OomKills(dirs), 0U);
  EXPECT_FALSE(CpuTimeNs({}));
}

TEST(CgroupCounters, KnowsNoKillsFromNoCounter) {
  const os::FakeCgroupFs files;
  const std::string dir = MakeCgroup(files, "pod/one");
  EXPECT_FALSE(OomKillsIn(dir)) << "no memory controller";
  files.Put("pod/one/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n");
  EXPECT_EQ(OomKillsIn(dir), 0U) << "a kernel that does not count them";
}

TEST(CgroupCounters, HasThoseAboveUpToTheRoot) {
  const os::FakeCgroupFs files;
  const std::string dir = MakeCgroup(files, "pod/one");
  EXPECT_THAT(UpToRoot(dir), ElementsAre(dir, files.path() + "/pod"));
  EXPECT_THAT(UpToRoot("/nowhere"), IsEmpty());
}

TEST(CgroupCounters, TakesNothingElseForANumber) {
  const os::FakeCgroupFs files;
  for (const char* text : {"", "\n", "max\n", "-1\n", "1 2\n", "99999999999999999999\n"}) {
    files.Put("file", text);
    EXPECT_FALSE(ReadNumber(files.path() + "/file")) << text;
    files.Put("file", std::string("name ") + text);
    EXPECT_FALSE(ReadField(files.path() + "/file", "name")) << text;
  }
  files.Put("file", "oom 3\noom_kill_disable 1\noom_kill 7");
  EXPECT_EQ(ReadField(files.path() + "/file", "oom_kill"), 7U);
  EXPECT_EQ(ReadField(files.path() + "/file", "oom"), 3U);
}

TEST(HostLimits, AreTheLowestUpToTheRoot) {
  const os::FakeCgroupFs files;
  const std::string v2 = MakeCgroup(files, "pod/one");
  files.Put("pod/one/memory.max", "max\n");
  files.Put("pod/memory.max", "64000\n");
  files.Put("pod/one/cpu.max", "max 100000\n");
  files.Put("pod/cpu.max", "150000 100000\n");
  EXPECT_EQ(ReadHostLimits({v2}).memory_bytes, 64000U);
  EXPECT_LE(ReadHostLimits({v2}).cpus, 2U);
  EXPECT_GE(ReadHostLimits({v2}).cpus, 1U);
  files.Put("pod/cpu.max", "max 100000\n");
  EXPECT_EQ(ReadHostLimits({v2}).cpus, 0U) << "no quota";
  files.Put("pod/memory.max", "max\n");
  EXPECT_EQ(ReadHostLimits({v2}).memory_bytes, ReadHostLimits({v2}).host_memory_bytes);
}

TEST(HostLimits, OfV1AreInTwoFiles) {
  const os::FakeCgroupFs files;
  const std::string cpu = MakeCgroup(files, "cpu/one");
  files.Put("cpu/one/cpu.cfs_quota_us", "-1\n");
  files.Put("cpu/one/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(ReadHostLimits({cpu}).cpus, 0U);
  files.Put("cpu/one/cpu.cfs_quota_us", "20000\n");
  EXPECT_GE(ReadHostLimits({cpu}).cpus, 1U);
}

}  // namespace
}  // namespace gantry::cgroup
