// SPDX-License-Identifier: Apache-2.0
//
// That memory ran out, said by the backend, by the container's cgroup, or by both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/cgroup/cgroup.h>
#include <gantry/toolkit/files/files.h>

#include "core/config/config.h"
#include "tests/unit/cgroup/fake_cgroupfs.h"
#include "tests/unit/task/task_test.h"

namespace gantry::task {
namespace {

using testing::ElementsAre;

class OutOfMemory : public TaskTest {
 protected:
  /// A container in a cgroup of plain files.
  void RunInCgroup() {
    files_.Put("cgroup.controllers", "memory\n");
    files_.Put("c1/cgroup.controllers", "memory\n");
    SetKills(0);
    around_.cgroups = *cgroup::CgroupHierarchy::At(files_.path());
    RestartEngine();
    UseContext([](ContainerContext& context) -> Status {
      GANTRY_TRY([[maybe_unused]] const auto dirs, context.MakeCgroups(CgroupDevices::kOfSpec));
      return {};
    });
    Announce("c1");
    ASSERT_TRUE(ReplaceFile(dir_.path() + "/c1/config.json",
                            R"({"ociVersion":"1.2.0","process":{"args":["/bin/true"],"cwd":"/"},)"
                            R"("root":{"path":"rootfs"},"linux":{"cgroupsPath":"/c1",)"
                            R"("namespaces":[{"type":"pid"},{"type":"mount"}]}})",
                            0644));
    const auto created = Create("c1");
    ASSERT_TRUE(created) << created.error().message;
    ASSERT_TRUE(Start("c1"));
  }

  void UseContext(std::function<Status(ContainerContext&)> use) {
    backend_.UseContext([this, use = std::move(use)](ContainerContext& context, bool recovered) {
      context_ = &context;
      return recovered ? Status() : use(context);
    });
  }

  void SetKills(int kills) {
    files_.Put("c1/memory.events", "oom_kill " + std::to_string(kills) + "\n");
  }

  os::FakeCgroupFs files_;
  ContainerContext* context_ = nullptr;
};

TEST_F(OutOfMemory, IsToldByTheBackend) {
  UseContext([](ContainerContext&) { return Status(); });
  Run("c1");
  context_->OutOfMemory();
  End("c1", 137);
  EXPECT_THAT(Events(), ElementsAre("create c1", "start c1", "oom c1", "exit c1 137"));
}

TEST_F(OutOfMemory, IsToldByTheBackendOfACgroupThatHasNotSeenIt) {
  RunInCgroup();
  context_->OutOfMemory();
  End("c1", 137);
  EXPECT_THAT(Events(), ElementsAre("create c1", "start c1", "oom c1", "exit c1 137"));
}

TEST_F(OutOfMemory, IsToldOnceWhereTheCgroupTellsItFirst) {
  RunInCgroup();
  SetKills(1);
  ASSERT_TRUE(Until([&] { return Events().back() == "oom c1"; }));
  context_->OutOfMemory();
  End("c1", 137);
  EXPECT_THAT(Events(), ElementsAre("create c1", "start c1", "oom c1", "exit c1 137"));
}

TEST_F(OutOfMemory, IsToldOnceWhereTheBackendTellsItFirst) {
  RunInCgroup();
  SetKills(1);
  // Before the loop looks at the cgroup's.
  context_->OutOfMemory();
  End("c1", 137);
  EXPECT_THAT(Events(), ElementsAre("create c1", "start c1", "oom c1", "exit c1 137"));
}

TEST_F(OutOfMemory, IsTheBackendsWordAgainAfterARestart) {
  RunInCgroup();
  SetKills(1);
  ASSERT_TRUE(Until([&] { return Events().back() == "oom c1"; }));
  RestartEngine();
  EXPECT_EQ(State("c1")->status(), pb::RUNNING);
  context_->OutOfMemory();
  ASSERT_TRUE(Until([&] { return Events().size() == 4; }));
  EXPECT_THAT(Events(), ElementsAre("create c1", "start c1", "oom c1", "oom c1"));
}

}  // namespace
}  // namespace gantry::task
