// SPDX-License-Identifier: Apache-2.0
#include "core/pod/pod_cgroup.h"

#include <gtest/gtest.h>

#include <gantry/toolkit/cgroup/cgroup.h>
#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"

namespace gantry::task {
namespace {

TEST(PodCgroupPath, OfAPathIsThatPath) {
  EXPECT_EQ(*PodCgroupPath("/kubepods/burstable/pod1"), "/kubepods/burstable/pod1");
  EXPECT_EQ(*PodCgroupPath("pods"), "/pods");
}

TEST(PodCgroupPath, OfASliceIsWhereSystemdKeepsIt) {
  EXPECT_EQ(*PodCgroupPath("kubepods-burstable-pod1_2.slice"),
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice");
  EXPECT_EQ(*PodCgroupPath("/kubepods.slice/kubepods-besteffort.slice"),
            "/kubepods.slice/kubepods-besteffort.slice");
  EXPECT_EQ(*PodCgroupPath("-.slice"), "/");
}

TEST(PodCgroupPath, RefusesWhatIsNoSlice) {
  for (const char* name : {".slice", "a--b.slice", "-a.slice", "a-.slice"}) {
    EXPECT_FALSE(PodCgroupPath(name)) << name;
  }
}

TEST(PodLimits, AddsWhatTheSandboxItselfCosts) {
  PodResources resources;
  resources.memory_limit = 100 << 20;
  resources.cpu_quota = 50'000;
  resources.cpu_period = 100'000;
  resources.cpuset_cpus = "0-1";
  PodResources overhead;
  overhead.memory_limit = 20 << 20;
  overhead.cpu_quota = 10'000;
  overhead.cpu_shares = 256;
  const cgroup::CgroupResources limits = PodLimits(resources, overhead);
  EXPECT_EQ(limits.memory.limit_bytes, 120 << 20);
  EXPECT_EQ(limits.cpu.quota_us, 60'000);
  EXPECT_EQ(limits.cpu.period_us, 100'000U);
  EXPECT_EQ(limits.cpu.shares, std::nullopt) << "no limit stays no limit";
  EXPECT_EQ(limits.cpu.cpus, "0-1");
}

TEST(PodLimits, WithoutALimitStaysWithoutOne) {
  PodResources resources;
  resources.memory_limit = -1;
  PodResources overhead;
  overhead.memory_limit = 20 << 20;
  EXPECT_EQ(PodLimits(resources, overhead).memory.limit_bytes, -1);
}

class PodCgroups : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = *os::TempDir::Create();
    ASSERT_TRUE(ReplaceFile(dir_.path() + "/cgroup.controllers", "", 0644));
    auto hierarchy = cgroup::CgroupHierarchy::At(dir_.path());
    ASSERT_TRUE(hierarchy) << hierarchy.error().message;
    hierarchy_.emplace(std::move(*hierarchy));
    config_.cgroup_parent = "/pods/pod1";
  }

  bool IsThere(const std::string& path) const { return Exists(dir_.path() + path); }

  os::TempDir dir_;
  std::optional<cgroup::CgroupHierarchy> hierarchy_;
  PodConfig config_;
};

TEST_F(PodCgroups, OfItsOwnAreInsideThoseOfThePod) {
  ASSERT_TRUE(os::MakeDirs(dir_.path() + "/pods/pod1", 0755));
  for (const char* level : {"/pods", "/pods/pod1"}) {
    ASSERT_TRUE(ReplaceFile(dir_.path() + level + "/cgroup.controllers", "", 0644));
  }
  const auto found = PodCgroup::Find(*hierarchy_, config_, "p1");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_FALSE(found->made) << "the pod's was there";
  const Status made = found->Create(*hierarchy_, config_);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_TRUE(IsThere("/pods/pod1/gantry-p1"));
}

TEST_F(PodCgroups, AreToBeMadeWhereNobodyDid) {
  const auto found = PodCgroup::Find(*hierarchy_, config_, "p1");
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->made);
  EXPECT_FALSE(IsThere("/pods"));
}

TEST_F(PodCgroups, OfOthersStay) {
  ASSERT_TRUE(os::MakeDirs(dir_.path() + "/pods/pod1/gantry-p2", 0755));
  auto found = PodCgroup::Find(*hierarchy_, config_, "p1");
  ASSERT_TRUE(found);
  found->made = true;
  EXPECT_TRUE(found->Remove(std::chrono::seconds(1)));
  EXPECT_TRUE(IsThere("/pods/pod1/gantry-p2"));
}

TEST_F(PodCgroups, WithoutAParentThereAreNone) {
  config_.cgroup_parent.clear();
  const auto none = PodCgroup::Find(*hierarchy_, config_, "p1");
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->own.empty());
  EXPECT_TRUE(none->Create(*hierarchy_, config_));
  EXPECT_TRUE(none->Remove(std::chrono::seconds(1)));
}

TEST_F(PodCgroups, ThatCannotBeAreRefused) {
  config_.cgroup_parent = "/pods/../..";
  EXPECT_EQ(PodCgroup::Find(*hierarchy_, config_, "p1").error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace gantry::task
