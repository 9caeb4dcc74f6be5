// SPDX-License-Identifier: Apache-2.0
//
// Which scope of systemd a cgroup lies in, and what of new limits systemd is told.
#include "core/cgroup/scope_update.h"

#include <limits>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/cgroup/fake_cgroupfs.h"
#include "tests/unit/os/fake_systemd.h"

namespace gantry::cgroup {
namespace {

using os::FakeCgroupFs;

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();

using Mask = std::vector<uint8_t>;

class ScopePropertiesTest : public testing::Test {
 protected:
  /// What systemd is told; fails the test where that is an error.
  std::vector<os::UnitProperty> Of(const CgroupResources& resources) {
    auto told = ScopeProperties(fs_.path(), resources);
    EXPECT_TRUE(told) << told.error().message;
    return std::move(told).value_or(std::vector<os::UnitProperty>());
  }

  FakeCgroupFs fs_;
};

TEST(ScopeOfTest, IsTheCgroupOrTheOneAbove) {
  EXPECT_EQ(ScopeOf("/a.slice/cri-containerd-x.scope"), "/a.slice/cri-containerd-x.scope");
  EXPECT_EQ(ScopeOf("/a.slice/x.scope/container"), "/a.slice/x.scope");
  EXPECT_EQ(ScopeOf("/x.scope/y.scope"), "/x.scope");
}

TEST(ScopeOfTest, IsNoneElsewhere) {
  EXPECT_EQ(ScopeOf("/kubepods/pod1/x"), "");
  EXPECT_EQ(ScopeOf("/a.slice/.scope"), "");
  EXPECT_EQ(ScopeOf("/a.slice/x.scoped"), "");
  EXPECT_EQ(ScopeOf("/"), "");
  EXPECT_EQ(ScopeOf(""), "");
}

TEST_F(ScopePropertiesTest, AreWhatTheFilesSayOfWhatIsChanged) {
  fs_.Put("memory.max", "134217728\n");
  fs_.Put("memory.swap.max", "0\n");
  fs_.Put("memory.low", "4096\n");
  fs_.Put("pids.max", "max\n");
  fs_.Put("cpu.weight", "79\n");
  CgroupResources resources;
  resources.memory.limit_bytes = 134217728;
  resources.pids_limit = -1;
  EXPECT_THAT(Of(resources), ElementsAre(os::UnitProperty{"MemoryMax", 134217728U},
                                         os::UnitProperty{"MemorySwapMax", 0U},
                                         os::UnitProperty{"TasksMax", kNone}));
  resources = {};
  resources.cpu.shares = 2048;
  resources.memory.reservation_bytes = 4096;
  EXPECT_THAT(Of(resources), ElementsAre(os::UnitProperty{"MemoryLow", 4096U},
                                         os::UnitProperty{"CPUWeight", 79U}));
}

TEST_F(ScopePropertiesTest, AreNoneOfWhatTheNodeHasNot) {
  CgroupResources resources;
  resources.memory.limit_bytes = -1;
  resources.cpu.cpus = "0";
  EXPECT_THAT(Of(resources), IsEmpty());
}

TEST_F(ScopePropertiesTest, OfAQuotaAreWholePercents) {
  CgroupResources resources;
  resources.cpu.quota_us = 12345;
  fs_.Put("cpu.max", "12345 100000\n");
  EXPECT_THAT(Of(resources), ElementsAre(os::UnitProperty{"CPUQuotaPeriodUSec", 100000U},
                                         os::UnitProperty{"CPUQuotaPerSecUSec", 130000U}));
  fs_.Put("cpu.max", "max 50000\n");
  EXPECT_THAT(Of(resources), ElementsAre(os::UnitProperty{"CPUQuotaPeriodUSec", 50000U},
                                         os::UnitProperty{"CPUQuotaPerSecUSec", kNone}));
}

TEST_F(ScopePropertiesTest, OfProcessorsAreAMask) {
  CgroupResources resources;
  resources.cpu.cpus = "1,8-10";
  resources.cpu.mems = "0";
  fs_.Put("cpuset.cpus", "1,8-10\n");
  fs_.Put("cpuset.mems", "0\n");
  EXPECT_THAT(Of(resources), ElementsAre(os::UnitProperty{"AllowedCPUs", Mask{0x02, 0x07}},
                                         os::UnitProperty{"AllowedMemoryNodes", Mask{0x01}}));
}

TEST_F(ScopePropertiesTest, KnowTheFilesThatASpecNames) {
  CgroupResources resources;
  resources.unified = {{"memory.high", "1048576"}, {"io.latency", "x"}};
  fs_.Put("memory.high", "1048576\n");
  EXPECT_THAT(Of(resources), ElementsAre(os::UnitProperty{"MemoryHigh", 1048576U}));
}

TEST_F(ScopePropertiesTest, AreRefusedWhereAFileIsNotUnderstood) {
  CgroupResources resources;
  resources.cpu.cpus = "0";
  for (const char* text : {"0-", "-", "3-1", "99999", "a"}) {
    fs_.Put("cpuset.cpus", text);
    const auto found = ScopeProperties(fs_.path(), resources);
    ASSERT_FALSE(found) << text;
    EXPECT_THAT(found.error().message, HasSubstr("cpuset.cpus"));
  }
}

TEST(UpdateWithScopeTest, OfWhatIsInNoUnitWritesItsFilesAlone) {
  FakeCgroupFs fs;
  fs.Put("cgroup.controllers", "memory\n");
  fs.Put("a.slice/gantry-no-such-unit.scope/in/memory.max", "max\n");
  fs.Put("a.slice/gantry-no-such-unit.scope/memory.max", "max\n");
  const auto node = CgroupHierarchy::At(fs.path());
  ASSERT_TRUE(node);
  const auto cgroup = Cgroup::Named(*node, "/a.slice/gantry-no-such-unit.scope/in");
  ASSERT_TRUE(cgroup);
  CgroupResources resources;
  resources.memory.limit_bytes = 4096;
  ASSERT_TRUE(UpdateWithScope(*node, *cgroup, resources));
  EXPECT_EQ(fs.Get("a.slice/gantry-no-such-unit.scope/in/memory.max"), "4096");
  EXPECT_EQ(fs.Get("a.slice/gantry-no-such-unit.scope/memory.max"), "max\n");
}

class UpdateOfAUnitTest : public testing::Test {
 protected:
  void SetUp() override {
    systemd_ = os::FakeSystemd::Begin();
    if (!systemd_) {
      GTEST_SKIP() << "the machine has no libsystemd.so.0";
    }
    systemd_->Put("x.scope", "/a.slice/x.scope");
  }

  Status Update(const CgroupResources& resources, const std::string& path = "/a.slice/x.scope") {
    const auto node = CgroupHierarchy::At(fs_.path());
    EXPECT_TRUE(node);
    return UpdateWithScope(*node, *Cgroup::Named(*node, path), resources);
  }

  std::unique_ptr<os::FakeSystemd> systemd_;
  FakeCgroupFs fs_;
};

TEST_F(UpdateOfAUnitTest, IsToldToSystemd) {
  fs_.Put("cgroup.controllers", "memory\n");
  fs_.Put("a.slice/x.scope/pids.max", "");
  CgroupResources resources;
  resources.pids_limit = 7;
  const Status updated = Update(resources);
  ASSERT_TRUE(updated) << updated.error().message;
  EXPECT_EQ(fs_.Get("a.slice/x.scope/pids.max"), "7");
  EXPECT_THAT(systemd_->PropertiesOf("x.scope"), ElementsAre("TasksMax=7"));
}

TEST_F(UpdateOfAUnitTest, IsToldToSystemdOfV1Too) {
  for (const char* tree : {"memory", "pids", "systemd"}) {
    fs_.Put(std::string(tree) + "/cgroup.procs", "");
  }
  fs_.Put("pids/a.slice/x.scope/pids.max", "");
  CgroupResources resources;
  resources.pids_limit = 7;
  const Status updated = Update(resources);
  ASSERT_TRUE(updated) << updated.error().message;
  EXPECT_EQ(fs_.Get("pids/a.slice/x.scope/pids.max"), "7");
  EXPECT_THAT(systemd_->PropertiesOf("x.scope"), ElementsAre("TasksMax=7"));
}

TEST_F(UpdateOfAUnitTest, SaysThatSystemdWillSetItsOwnWhereItIsNotTold) {
  fs_.Put("cgroup.controllers", "memory\n");
  fs_.Put("a.slice/x.scope/pids.max", "");
  systemd_->Refuse("SetUnitProperties", "org.freedesktop.DBus.Error.AccessDenied");
  CgroupResources resources;
  resources.pids_limit = 7;
  const Status updated = Update(resources);
  ASSERT_FALSE(updated);
  EXPECT_EQ(updated.error().code, Code::kUnavailable);
  EXPECT_THAT(updated.error().message, HasSubstr("not for long"));
}

}  // namespace
}  // namespace gantry::cgroup
