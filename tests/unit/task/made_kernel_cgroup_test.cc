// SPDX-License-Identifier: Apache-2.0
//
// Cgroups that the core makes for a container, in the kernel's own trees: what is in them ends
// with them, and their limits hold.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include <gtest/gtest.h>

#include <gantry/toolkit/cgroup/cgroup.h>
#include <gantry/toolkit/files/files.h>

#include "core/config/config.h"
#include "tests/unit/task/made_cgroups.h"

namespace gantry::task {
namespace {

class MadeKernelCgroups : public MadeCgroups, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    const auto node = cgroup::CgroupHierarchy::OfNode();
    if (geteuid() != 0 || !node) {
      GTEST_SKIP() << (node ? "needs root" : node.error().message);
    }
    const bool v2 = GetParam();
    if (v2 ? node->unified().mount_dir.empty() : !node->v1().contains("pids")) {
      GTEST_SKIP() << "the node has no such tree";
    }
    tree_ = v2 ? *cgroup::CgroupHierarchy::At(node->unified().mount_dir) : *node;
    name_ = "gantry-test-" + RandomName(12);
    const auto probe = cgroup::Cgroup::Create(tree_, "/" + name_);
    if (!probe) {
      GTEST_SKIP() << "cannot make cgroups here: " << probe.error().message;
    }
    ASSERT_TRUE(probe->Remove(os::kBound));
    Begin(tree_);
  }

  /// Where a test fails they may be there.
  void TearDown() override {
    if (!name_.empty()) {
      EXPECT_TRUE(cgroup::Cgroup::Named(tree_, "/" + name_)->Kill(os::kBound));
      EXPECT_TRUE(cgroup::Cgroup::Named(tree_, "/" + name_)->Remove(os::kBound));
    }
  }

  cgroup::CgroupHierarchy tree_;
  std::string name_;
};

INSTANTIATE_TEST_SUITE_P(Trees, MadeKernelCgroups, testing::Bool(),
                         [](const auto& tree) { return tree.param ? "V2" : "V1"; });

TEST_P(MadeKernelCgroups, EndWithWhatIsInThem) {
  Announce("c1");
  const std::string limits = GetParam() ? "" : R"(,"resources":{"pids":{"limit":7}})";
  Specify("c1", R"("cgroupsPath":")" + name_ + "\"" + limits);
  const auto created = Create("c1");
  ASSERT_TRUE(created) << created.error().message;
  const auto cgroup = cgroup::Cgroup::Named(tree_, "/" + name_);
  EXPECT_EQ(made_, cgroup->Dirs());
  if (!GetParam()) {
    EXPECT_EQ(ReadFile(cgroup->DirOf("pids") + "/pids.max", 100).value_or(""), "7\n");
  }
  os::IdleProcess left;
  ASSERT_TRUE(cgroup->AddProcess(left.pid()));
  ASSERT_TRUE(Start("c1"));
  RestartEngine();
  EXPECT_EQ(State("c1")->status(), pb::RUNNING);
  End("c1", 3);
  EXPECT_TRUE(left.Alive());
  const auto deleted = Delete("c1");
  ASSERT_TRUE(deleted) << deleted.error().message;
  EXPECT_FALSE(left.Alive());
  EXPECT_FALSE(cgroup->Exists());
}

/// Whether a process in the cgroup may open /dev/kmsg, which no container has by default.
bool MayOpenKmsg(const cgroup::Cgroup& cgroup) {
  int gate[2];
  EXPECT_EQ(pipe2(gate, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    const bool let = read(gate[0], &byte, 1) == 1;
    _exit(let && open("/dev/kmsg", O_RDONLY | O_CLOEXEC) < 0 && errno == EPERM ? 1 : 0);
  }
  close(gate[0]);
  EXPECT_TRUE(cgroup.AddProcess(child));
  EXPECT_EQ(write(gate[1], "\n", 1), 1);
  close(gate[1]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status == 0;
}

TEST_P(MadeKernelCgroups, HaveTheDevicesOfTheSpecOnly) {
  if (!GetParam() && !tree_.v1().contains("devices")) {
    GTEST_SKIP() << "the node has no such tree";
  }
  const auto cgroup = cgroup::Cgroup::Named(tree_, "/" + name_);
  AnnounceIn("c1", name_);
  ASSERT_TRUE(Create("c1"));
  EXPECT_FALSE(MayOpenKmsg(*cgroup)) << "its spec allows none";
  ASSERT_TRUE(Delete("c1"));
  Announce("c2");
  Specify("c2", R"("cgroupsPath":")" + name_ +
                    R"(","resources":{"devices":[{"allow":false,"access":"rwm"},)"
                    R"({"allow":true,"type":"c","major":1,"minor":11,"access":"r"}]})");
  ASSERT_TRUE(Create("c2"));
  EXPECT_TRUE(MayOpenKmsg(*cgroup));
  ASSERT_TRUE(Delete("c2"));
  devices_ = CgroupDevices::kNotLimited;
  AnnounceIn("c3", name_);
  ASSERT_TRUE(Create("c3"));
  EXPECT_TRUE(MayOpenKmsg(*cgroup));
  EXPECT_TRUE(Delete("c3"));
}

TEST_P(MadeKernelCgroups, AreUsedForWhatTheBackendLeavesOut) {
  AnnounceIn("c1", name_);
  backend_.LeaveOut("pause");
  backend_.LeaveOut("resume");
  ASSERT_TRUE(Create("c1"));
  ASSERT_TRUE(Start("c1"));
  pb::PauseRequest pause;
  pause.set_id("c1");
  const auto paused = Ask<wire::Empty>("Pause", pause, "c1");
  ASSERT_TRUE(paused) << paused.error().message;
  EXPECT_EQ(cgroup::Cgroup::Named(tree_, "/" + name_)->Frozen().value_or(false), true);
  RestartEngine();
  EXPECT_EQ(State("c1")->status(), pb::PAUSED);
  pb::ResumeRequest resume;
  resume.set_id("c1");
  ASSERT_TRUE(Ask<wire::Empty>("Resume", resume, "c1"));
  End("c1", 3);
  EXPECT_TRUE(Delete("c1"));
}

}  // namespace
}  // namespace gantry::task
