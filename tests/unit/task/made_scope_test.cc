// SPDX-License-Identifier: Apache-2.0
//
// systemd's units for cgroups that the core makes, in the kernel's own tree: there when the
// container is, on record before, and gone with it, whoever ends it.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/cgroup/cgroup.h>
#include <gantry/toolkit/files/files.h>

#include "core/config/config.h"
#include "core/link/messages.h"
#include "core/link/record_peek.h"
#include "tests/unit/os/fake_systemd.h"
#include "tests/unit/task/made_cgroups.h"

namespace gantry::task {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class MadeScopes : public MadeCgroups {
 protected:
  void SetUp() override {
    const auto node = cgroup::CgroupHierarchy::OfNode();
    if (geteuid() != 0 || !node || node->unified().mount_dir.empty()) {
      GTEST_SKIP() << "needs root and a tree of cgroup v2";
    }
    tree_ = *cgroup::CgroupHierarchy::At(node->unified().mount_dir);
    const std::string slice = "gantrytest" + RandomName(12) + ".slice";
    const auto made = cgroup::Cgroup::Create(tree_, "/" + slice);
    if (!made) {
      GTEST_SKIP() << "cannot make cgroups here: " << made.error().message;
    }
    slice_ = slice;
    systemd_ = os::FakeSystemd::Begin();
    if (!systemd_) {
      GTEST_SKIP() << "the machine has no libsystemd.so.0";
    }
    Begin(tree_);
    backend_.UseContext([this](ContainerContext& context, bool recovered) -> Status {
      GANTRY_CHECK_OK(recovered ? Status() : MakeIn(context));
      // The container's first process.
      return recovered || !process_ ? Status() : Scope().AddProcess(process_->pid());
    });
  }

  /// Where a test fails they may be there.
  void TearDown() override {
    if (!slice_.empty()) {
      const auto all = cgroup::Cgroup::Named(tree_, "/" + slice_);
      EXPECT_TRUE(all->Kill(os::kBound));
      EXPECT_TRUE(all->Remove(os::kBound));
    }
  }

  cgroup::Cgroup Scope() const { return *cgroup::Cgroup::Named(tree_, Path()); }

  std::string Path() const { return "/" + slice_ + "/" + kUnit; }

  void AnnounceScope(const std::string& id = "c1") { AnnounceIn(id, slice_ + ":x:c1"); }

  /// How keeper and shim end it.
  auto StopsTheUnit() const { return Contains(kUnit); }

  static constexpr const char* kUnit = "x-c1.scope";

  cgroup::CgroupHierarchy tree_;
  std::string slice_;
  std::unique_ptr<os::FakeSystemd> systemd_;
  std::optional<os::IdleProcess> process_{std::in_place};
};

TEST_F(MadeScopes, AreStartedAroundTheContainersProcess) {
  AnnounceScope();
  const auto created = Create("c1");
  ASSERT_TRUE(created) << created.error().message;
  EXPECT_THAT(systemd_->Calls(), ElementsAre("start x-c1.scope"));
  EXPECT_THAT(systemd_->PropertiesOf(kUnit),
              AllOf(Contains("PIDs=" + std::to_string(process_->pid())),
                    Contains("Slice=" + slice_), Contains("Delegate=yes")));
}

TEST_F(MadeScopes, GoWithTheContainer) {
  AnnounceScope();
  ASSERT_TRUE(Create("c1"));
  ASSERT_TRUE(Start("c1"));
  End("c1", 3);
  EXPECT_TRUE(systemd_->Has(kUnit));
  const auto deleted = Delete("c1");
  ASSERT_TRUE(deleted) << deleted.error().message;
  EXPECT_FALSE(systemd_->Has(kUnit));
  EXPECT_FALSE(Scope().Exists());
}

TEST_F(MadeScopes, AreOnRecordBeforeTheyAreStarted) {
  AnnounceScope();
  std::atomic<bool> started = false;
  systemd_->WhenStarting([&] {
    started = true;
    const auto bytes = ReadFile(store::PathOf(dir_.path() + "/c1"), 1 << 20);
    ASSERT_TRUE(bytes);
    const auto peek = link::PeekRecord(*bytes);
    ASSERT_TRUE(peek && peek->cleanup);
    EXPECT_THAT(peek->cleanup->argv, StopsTheUnit());
    EXPECT_EQ(store::Decode(*bytes)->blobs["made-scope"], kUnit);
  });
  ASSERT_TRUE(Create("c1"));
  EXPECT_TRUE(started);
  Settle();
  ASSERT_TRUE(keeper_.last_resorts[1].cleanup);
  EXPECT_THAT(keeper_.last_resorts[1].cleanup->argv, StopsTheUnit());
}

TEST_F(MadeScopes, GoWithACreateThatTheEnginesEndInterrupts) {
  AnnounceScope();
  // After its start, before the record says that the container is there.
  systemd_->EndJobsWith("");
  Send("Create", CreateRequest("c1"), "c1");
  ASSERT_TRUE(Until([&] { return systemd_->Has(kUnit); }));
  systemd_->EndJobsWith("done");
  backend_.FailNext("recover c1", Error{Code::kAborted, 0, "it was never finished", {}});
  RestartEngine();
  EXPECT_EQ(CodeOf(State("c1")), Code::kNotFound);
  EXPECT_FALSE(systemd_->Has(kUnit));
  EXPECT_FALSE(Scope().Exists());
}

TEST_F(MadeScopes, GoWithADeleteThatTheEnginesEndInterrupts) {
  AnnounceScope();
  ASSERT_TRUE(Create("c1"));
  ASSERT_TRUE(Start("c1"));
  End("c1", 3);
  // While systemd ends it.
  systemd_->EndJobsWith("");
  SendDelete("c1");
  ASSERT_TRUE(Until([&] { return std::ranges::contains(systemd_->Calls(), "stop x-c1.scope"); }));
  EXPECT_TRUE(systemd_->Has(kUnit));
  systemd_->EndJobsWith("done");
  RestartEngine();
  const auto deleted = Delete("c1");
  ASSERT_TRUE(deleted) << deleted.error().message;
  EXPECT_EQ(deleted->exit_status(), 3U);
  EXPECT_FALSE(systemd_->Has(kUnit));
  EXPECT_FALSE(Scope().Exists());
}

TEST_F(MadeScopes, GoWhereAnotherEngineDeletes) {
  AnnounceScope();
  ASSERT_TRUE(Create("c1"));
  ASSERT_TRUE(Start("c1"));
  RestartEngine();
  EXPECT_EQ(State("c1")->status(), pb::RUNNING);
  End("c1", 3);
  EXPECT_TRUE(Delete("c1"));
  EXPECT_FALSE(systemd_->Has(kUnit));
}

TEST_F(MadeScopes, ThatSystemdRefusesFailTheCreateAndLeaveNothing) {
  AnnounceScope();
  systemd_->Refuse("StartTransientUnit", "org.freedesktop.DBus.Error.InvalidArgs");
  const auto refused = Create("c1");
  EXPECT_EQ(CodeOf(refused), Code::kInvalidArgument);
  EXPECT_THAT(MessageOf(refused), AllOf(HasSubstr("systemd"), HasSubstr("container 'c1'")));
  EXPECT_FALSE(Scope().Exists());
  EXPECT_FALSE(process_->Alive());
  Settle();
  EXPECT_THAT(keeper_.last_resorts[1].cgroup_dirs, IsEmpty());
}

TEST_F(MadeScopes, OfASystemdThatIsNotThereAreRefusedBeforeAnythingIsMade) {
  AnnounceScope();
  systemd_->Refuse("GetUnit", "org.freedesktop.DBus.Error.NoReply");
  const auto refused = Create("c1");
  EXPECT_EQ(CodeOf(refused), Code::kUnavailable);
  EXPECT_THAT(MessageOf(refused), HasSubstr("systemd"));
  EXPECT_FALSE(Scope().Exists());
}

TEST_F(MadeScopes, TakeTheNameOfOneThatIsLeft) {
  AnnounceScope();
  systemd_->Put(kUnit, "");
  ASSERT_TRUE(Create("c1"));
  EXPECT_THAT(systemd_->Calls(),
              ElementsAre("stop x-c1.scope", "forget x-c1.scope", "start x-c1.scope"));
}

TEST_F(MadeScopes, LeaveTheUnitOfAnother) {
  AnnounceScope();
  systemd_->Put(kUnit, "/user.slice/x-c1.scope");
  const auto refused = Create("c1");
  EXPECT_EQ(CodeOf(refused), Code::kFailedPrecondition);
  EXPECT_THAT(MessageOf(refused), HasSubstr("/user.slice/x-c1.scope"));
  EXPECT_TRUE(systemd_->Has(kUnit));
  EXPECT_FALSE(Scope().Exists());
}

TEST_F(MadeScopes, ThatCannotBeStoppedKeepNoContainer) {
  AnnounceScope();
  ASSERT_TRUE(Create("c1"));
  systemd_->Refuse("StopUnit", "org.freedesktop.DBus.Error.AccessDenied");
  EXPECT_TRUE(Delete("c1"));
  EXPECT_FALSE(Scope().Exists());
  EXPECT_FALSE(process_->Alive());
}

TEST_F(MadeScopes, AreNoneWithoutAProcess) {
  process_.reset();
  AnnounceScope();
  ASSERT_TRUE(Create("c1"));
  EXPECT_TRUE(Scope().Exists());
  EXPECT_THAT(systemd_->Calls(), IsEmpty());
  EXPECT_TRUE(Delete("c1"));
}

TEST_F(MadeScopes, AreNoneWhereThePathIsNoScopes) {
  AnnounceIn("c1", "/" + slice_ + "/" + kUnit);
  ASSERT_TRUE(Create("c1"));
  EXPECT_THAT(systemd_->Calls(), IsEmpty());
  EXPECT_TRUE(Delete("c1"));
}

}  // namespace
}  // namespace gantry::task
