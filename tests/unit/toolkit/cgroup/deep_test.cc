// SPDX-License-Identifier: Apache-2.0
//
// A container that may write its cgroup nests some thousand in it, or freezes one: on the
// stack of a worker.
#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/cgroup/cgroup.h>
#include <gantry/toolkit/cgroup/tree.h>
#include <gantry/toolkit/files/files.h>

#include "tests/unit/cgroup/fake_cgroupfs.h"
#include "tests/unit/toolkit/files/deep_tree.h"

namespace gantry::cgroup {
namespace {

using os::FakeCgroupFs;
using os::IdleProcess;
using os::kBound;

TEST(DeepCgroup, KnowsItsProcesses) {
  const ScratchTree fs;
  ASSERT_EQ(mkdir((fs / "c").c_str(), 0755), 0);
  PutFile(AT_FDCWD, (fs / "c/cgroup.procs").c_str(), "7\n");
  MakeDeepTree(fs.path() + "/c",
               [](int dir, bool deepest) { PutFile(dir, "cgroup.procs", deepest ? "42\n" : ""); });
  OnSmallStack([&] {
    const auto procs = ProcsBelow(fs.path() + "/c");
    ASSERT_TRUE(procs) << procs.error().message;
    EXPECT_THAT(*procs, testing::ElementsAre(7, 42));
  });
}

TEST(DeepCgroup, IsRemoved) {
  const ScratchTree fs;
  ASSERT_EQ(mkdir((fs / "c").c_str(), 0755), 0);
  MakeDeepTree(fs.path() + "/c");
  OnSmallStack([&] {
    const Status removed = RemoveBelow(fs.path() + "/c", std::chrono::steady_clock::now() + kBound);
    EXPECT_TRUE(removed) << removed.error().message;
  });
  EXPECT_FALSE(Exists(fs.path() + "/c"));
}

TEST(DeepCgroup, IsThawedOnEachLevel) {
  const FakeCgroupFs fs;
  fs.Put("c/freezer.state", "FROZEN");
  fs.Put("c/a/b/freezer.state", "FROZEN");
  fs.Put("c/d/freezer.state", "FROZEN");
  ThawBelow(fs.path() + "/c");
  EXPECT_EQ(fs.Get("c/freezer.state"), "THAWED");
  EXPECT_EQ(fs.Get("c/a/b/freezer.state"), "THAWED");
  EXPECT_EQ(fs.Get("c/d/freezer.state"), "THAWED");
  ThawBelow(fs.path() + "/none");
}

/// A cgroup of the freezer's tree on this machine; empty where it has none.
std::string RealFreezer() {
  const std::string dir = "/sys/fs/cgroup/freezer/gantry-deep-" + std::to_string(getpid());
  return mkdir(dir.c_str(), 0755) == 0 ? dir : "";
}

class FrozenBelow : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = RealFreezer();
    if (dir_.empty()) {
      GTEST_SKIP() << "needs root and cgroup v1";
    }
    const auto hierarchy = CgroupHierarchy::OfNode();
    ASSERT_TRUE(hierarchy);
    const auto cgroup = Cgroup::Named(*hierarchy, dir_.substr(dir_.rfind('/')));
    ASSERT_TRUE(cgroup);
    cgroup_ = *cgroup;
    ASSERT_EQ(mkdir((dir_ + "/in").c_str(), 0755), 0);
    ASSERT_TRUE(WriteExisting(dir_ + "/in/cgroup.procs", std::to_string(process_.pid())));
    ASSERT_TRUE(WriteExisting(dir_ + "/in/freezer.state", "FROZEN"));
  }

  void TearDown() override {
    if (!dir_.empty()) {
      IgnoreError(WriteExisting(dir_ + "/in/freezer.state", "THAWED"), "it is gone");
      EXPECT_TRUE(cgroup_.Kill(kBound));
      EXPECT_TRUE(cgroup_.Remove(kBound));
    }
  }

  std::string dir_;
  Cgroup cgroup_;
  IdleProcess process_;
};

TEST_F(FrozenBelow, IsKilled) {
  const Status killed = cgroup_.Kill(kBound);
  EXPECT_TRUE(killed) << killed.error().message;
  EXPECT_TRUE(killed && WIFSIGNALED(process_.Wait()));
}

TEST_F(FrozenBelow, TakesItsSignalWhenThawed) {
  ASSERT_EQ(kill(process_.pid(), SIGKILL), 0);
  cgroup_.ThawToDie();
  EXPECT_TRUE(WIFSIGNALED(process_.Wait()));
}

}  // namespace
}  // namespace gantry::cgroup
