// SPDX-License-Identifier: Apache-2.0
//
// Which cgroups a spec names, and how they are made, by a tree of files.
#include "core/task/container_cgroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/cgroup/cgroup.h>
#include <gantry/toolkit/files/files.h>

#include "tests/unit/cgroup/fake_cgroupfs.h"

namespace gantry::task {
namespace {

using testing::HasSubstr;

TEST(ContainerCgroupPath, OfAPathIsThatPath) {
  EXPECT_EQ(*ContainerCgroupPath("/default/c1"), "/default/c1");
  EXPECT_EQ(*ContainerCgroupPath("/odd:name:c1"), "/odd:name:c1");
  EXPECT_EQ(*ContainerCgroupPath("default/c1"), "/default/c1");
}

TEST(ContainerCgroupPath, OfAScopeIsInItsSlice) {
  EXPECT_EQ(*ContainerCgroupPath("kubepods-pod1.slice:cri-containerd:c1"),
            "/kubepods.slice/kubepods-pod1.slice/cri-containerd-c1.scope");
  EXPECT_EQ(*ContainerCgroupPath(":docker:c1"), "/system.slice/docker-c1.scope");
  EXPECT_EQ(*ContainerCgroupPath("a.slice::c1"), "/a.slice/c1.scope");
  EXPECT_EQ(*ContainerCgroupPath("-.slice:a:c1"), "/a-c1.scope");
}

TEST(ContainerCgroupPath, RefusesWhatIsNeither) {
  for (const char* path : {"a.slice:b", "a.slice:b:c:d", "a:b:c", "a.slice:b:", "a.slice:b:c/d",
                           "a/b.slice:c:d", "a--b.slice:c:d", ".slice:c:d"}) {
    const auto refused = ContainerCgroupPath(path);
    ASSERT_FALSE(refused) << path << " is " << *refused;
    EXPECT_EQ(refused.error().code, Code::kInvalidArgument) << path;
    EXPECT_THAT(refused.error().message, HasSubstr("/linux/cgroupsPath"));
  }
}

class ContainerCgroups : public testing::Test {
 protected:
  void MakeV1() {
    for (const char* tree : {"memory", "cpu,cpuacct", "freezer", "pids", "systemd"}) {
      fs_.Put(std::string(tree) + "/cgroup.procs", "");
    }
  }

  void MakeV2() {
    fs_.Put("cgroup.controllers", "cpu memory pids\n");
    fs_.Put("cgroup.subtree_control", "");
    fs_.Put("pods/cgroup.controllers", "");
  }

  cgroup::CgroupHierarchy Hierarchy() {
    auto out = cgroup::CgroupHierarchy::At(fs_.path());
    EXPECT_TRUE(out);
    return *out;
  }

  bool IsThere(const std::string& path) const { return Exists(fs_.path() + "/" + path); }

  os::FakeCgroupFs fs_;
  cgroup::CgroupResources limits_;
};

TEST_F(ContainerCgroups, AreOneOfV2WithItsLimits) {
  MakeV2();
  fs_.Put("pods/c1/pids.max", "");
  limits_.pids_limit = 7;
  const auto found = ContainerCgroup::Find(Hierarchy(), "pods/c1");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_TRUE(found->CheckFree()) << "what is there has no processes";
  const Status made = found->Create(Hierarchy(), limits_, nullptr);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(fs_.Get("pods/c1/pids.max"), "7");
  EXPECT_THAT(fs_.Get("cgroup.subtree_control"), HasSubstr("+pids"));
}

TEST_F(ContainerCgroups, AreOneForEachTreeOfV1) {
  MakeV1();
  fs_.Put("unified/cgroup.controllers", "");
  fs_.Put("pids/a.slice/x-c1.scope/pids.max", "");
  limits_.pids_limit = 7;
  const auto found = ContainerCgroup::Find(Hierarchy(), "a.slice:x:c1");
  ASSERT_TRUE(found) << found.error().message;
  const Status made = found->Create(Hierarchy(), limits_, nullptr);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(fs_.Get("pids/a.slice/x-c1.scope/pids.max"), "7");
  for (const char* tree : {"memory", "cpu,cpuacct", "freezer", "systemd"}) {
    EXPECT_TRUE(IsThere(tree + std::string("/a.slice/x-c1.scope"))) << tree;
  }
  EXPECT_FALSE(IsThere("unified/a.slice")) << "of a hybrid node's v2 tree nothing is taken";
}

TEST_F(ContainerCgroups, OfNoNameAreNone) {
  MakeV2();
  const auto none = ContainerCgroup::Find(Hierarchy(), "");
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->cgroup.empty());
}

TEST_F(ContainerCgroups, ThatCannotBeAreRefused) {
  MakeV2();
  for (const char* path : {"/pods/../c1", "../c1", "/", "/."}) {
    const auto refused = ContainerCgroup::Find(Hierarchy(), path);
    ASSERT_FALSE(refused) << path;
    EXPECT_EQ(refused.error().code, Code::kInvalidArgument) << path;
    EXPECT_THAT(refused.error().message, HasSubstr("/linux/cgroupsPath"));
  }
  EXPECT_EQ(ContainerCgroup::Find({}, "/pods/c1").error().code, Code::kFailedPrecondition);
}

TEST_F(ContainerCgroups, OfOthersStay) {
  MakeV1();
  const auto found = ContainerCgroup::Find(Hierarchy(), "/c1");
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->CheckFree()) << "there is none";
  fs_.Put("pids/c1/below/cgroup.procs", "7\n");
  fs_.Put("pids/c1/cgroup.procs", "");
  const Status refused = found->CheckFree();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(refused.error().message, HasSubstr("1 processes"));
}

TEST_F(ContainerCgroups, ThatAreFrozenAreRefused) {
  MakeV2();
  fs_.Put("pods/c1/cgroup.freeze", "1\n");
  const auto found = ContainerCgroup::Find(Hierarchy(), "/pods/c1");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->CheckFree().error().code, Code::kFailedPrecondition);
}

TEST_F(ContainerCgroups, WhoseLimitCannotBeAreNotLeft) {
  MakeV2();
  limits_.pids_limit = 7;
  const auto found = ContainerCgroup::Find(Hierarchy(), "/pods/c1");
  ASSERT_TRUE(found);
  const Status made = found->Create(Hierarchy(), limits_, nullptr);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("make cgroup '/pods/c1'"));
  EXPECT_FALSE(IsThere("pods/c1"));
}

TEST_F(ContainerCgroups, WithoutALimitNeedNoFile) {
  MakeV2();
  limits_.pids_limit = -1;
  limits_.memory.swap_bytes = -1;
  const auto found = ContainerCgroup::Find(Hierarchy(), "/pods/c1");
  ASSERT_TRUE(found);
  const Status made = found->Create(Hierarchy(), limits_, nullptr);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_TRUE(RemoveContainerCgroup(found->cgroup, "", os::kBound));
  EXPECT_FALSE(IsThere("pods/c1"));
  EXPECT_TRUE(RemoveContainerCgroup(found->cgroup, "", os::kBound)) << "again";
}

}  // namespace
}  // namespace gantry::task
