// SPDX-License-Identifier: Apache-2.0
//
// systemd's unit for a cgroup that we make: by whom its name is taken, what it is started with,
// and when there is none.
#include "core/cgroup/scope_unit.h"

#include <chrono>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/cgroup/fake_cgroupfs.h"
#include "tests/unit/os/fake_systemd.h"

namespace gantry::cgroup {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr char kUnit[] = "x-c1.scope";
constexpr char kPath[] = "/a.slice/x-c1.scope";
constexpr char kInTree[] = "a.slice/x-c1.scope/";

class ScopeUnitTest : public testing::Test {
 protected:
  void SetUp() override {
    systemd_ = os::FakeSystemd::Begin();
    if (!systemd_) {
      GTEST_SKIP() << "the machine has no libsystemd.so.0";
    }
    fs_.Put("cgroup.controllers", "memory pids\n");
    Put("cgroup.procs", "");
  }

  static Deadline Soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

  void Put(const std::string& file, const std::string& text) { fs_.Put(kInTree + file, text); }

  /// Of the cgroup with these limits, which are in its files.
  ScopeRequest Request(const CgroupResources& limits = {}) {
    const auto tree = CgroupHierarchy::At(fs_.path());
    EXPECT_TRUE(tree);
    auto request = ScopeRequestOf({.slice = "a.slice", .unit = kUnit}, kPath,
                                  *Cgroup::Named(*tree, kPath), limits, nullptr);
    EXPECT_TRUE(request) << request.error().message;
    return *std::move(request);
  }

  std::unique_ptr<os::FakeSystemd> systemd_;
  os::FakeCgroupFs fs_;
};

TEST_F(ScopeUnitTest, IsStartedAroundAProcessWithWhatItsFilesSay) {
  CgroupResources limits;
  limits.memory.limit_bytes = 8192;
  Put("memory.max", "8192\n");
  Put("cgroup.procs", "77\n78\n");
  const ScopeRequest request = Request(limits);
  // systemd sets what it rounds, or does not know.
  systemd_->WhenStarting([this] { Put("memory.max", "1"); });
  const Status started = StartScope(request, Soon());
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_THAT(
      systemd_->PropertiesOf(kUnit),
      ElementsAre("CPUAccounting=yes", "CollectMode=inactive-or-failed", "DefaultDependencies=no",
                  "Delegate=yes", "Description=container in x-c1.scope", "IOAccounting=yes",
                  "MemoryAccounting=yes", "MemoryMax=8192", "PIDs=77", "Slice=a.slice",
                  "TasksAccounting=yes", "TasksMax=infinity"));
  EXPECT_EQ(fs_.Get(std::string(kInTree) + "memory.max"), "8192");
}

TEST_F(ScopeUnitTest, HasTheSpecsLimitOfProcesses) {
  CgroupResources limits;
  limits.pids_limit = 7;
  Put("pids.max", "7\n");
  Put("cgroup.procs", "77\n");
  ASSERT_TRUE(StartScope(Request(limits), Soon()));
  EXPECT_THAT(systemd_->PropertiesOf(kUnit), Contains("TasksMax=7"));
}

TEST_F(ScopeUnitTest, IsNoneWithoutAProcess) {
  ASSERT_TRUE(StartScope(Request(), Soon()));
  EXPECT_THAT(systemd_->Calls(), IsEmpty());
}

TEST_F(ScopeUnitTest, IsNotMissedWhereTheProcessEndsMeanwhile) {
  Put("cgroup.procs", "77\n");
  systemd_->Refuse("StartTransientUnit", "org.freedesktop.DBus.Error.UnixProcessIdUnknown");
  systemd_->WhenStarting([this] { Put("cgroup.procs", ""); });
  EXPECT_TRUE(StartScope(Request(), Soon()));
}

TEST_F(ScopeUnitTest, IsAnErrorWhereSystemdRefusesIt) {
  Put("cgroup.procs", "77\n");
  systemd_->Refuse("StartTransientUnit", "org.freedesktop.DBus.Error.InvalidArgs");
  const Status started = StartScope(Request(), Soon());
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Code::kInvalidArgument);
  EXPECT_THAT(started.error().message, AllOf(HasSubstr("systemd"), HasSubstr(kUnit)));
}

TEST_F(ScopeUnitTest, TakesANameThatNobodyHas) {
  EXPECT_TRUE(FreeScopeName(kUnit, kPath, Soon()));
  EXPECT_THAT(systemd_->Calls(), IsEmpty());
}

TEST_F(ScopeUnitTest, TakesANameThatIsLeft) {
  for (const char* const cgroup : {"", kPath}) {
    systemd_->Put(kUnit, cgroup);
    EXPECT_TRUE(FreeScopeName(kUnit, kPath, Soon()));
    EXPECT_FALSE(systemd_->Has(kUnit)) << cgroup;
  }
}

TEST_F(ScopeUnitTest, LeavesANameThatAnotherHas) {
  systemd_->Put(kUnit, "/user.slice/x-c1.scope");
  const Status taken = FreeScopeName(kUnit, kPath, Soon());
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(taken.error().message, AllOf(StartsWith("make scope 'x-c1.scope': systemd has"),
                                           HasSubstr("/user.slice/x-c1.scope")));
  EXPECT_TRUE(StopScope(kUnit, kPath, Soon())) << "it is not that one";
  EXPECT_TRUE(systemd_->Has(kUnit));
}

TEST_F(ScopeUnitTest, IsStoppedOnceAndForAll) {
  Put("cgroup.procs", "77\n");
  ASSERT_TRUE(StartScope(Request(), Soon()));
  EXPECT_TRUE(StopScope(kUnit, kPath, Soon()));
  EXPECT_TRUE(StopScope(kUnit, kPath, Soon())) << "again";
  EXPECT_THAT(systemd_->Calls(), ElementsAre("start x-c1.scope", "stop x-c1.scope"));
}

TEST_F(ScopeUnitTest, IsNotAskedForForEver) {
  systemd_->BeSilentAt("GetUnit");
  const auto soon = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  const Status status = FreeScopeName(kUnit, kPath, soon);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kUnavailable);
  EXPECT_THAT(status.error().message, HasSubstr("systemd"));
}

}  // namespace
}  // namespace gantry::cgroup
