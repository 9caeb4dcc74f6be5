// SPDX-License-Identifier: Apache-2.0
//
// What is removed where a container has made cgroups below its own, in trees of plain files and
// in the kernel's.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/deadline.h>
#include <gantry/format.h>
#include <gantry/toolkit/cgroup/remove.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/pidfd.h>

#include "core/os/fs.h"
#include "core/os/spawn.h"
#include "tests/unit/os/spawned.h"
#include "tests/unit/toolkit/files/deep_tree.h"

namespace gantry::cgroup {
namespace {

using testing::UnorderedElementsAre;

Deadline Soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

/// A process that ends when it is killed.
class Sleeper {
 public:
  Sleeper() : child_(os::SpawnProcess({.argv = {"/bin/sleep", "1000"}}).value()) {}

  pid_t pid() const { return child_.process().pid; }

  bool Ended() const { return HasEnded(child_.pidfd()); }

  /// As `os::Child`.
  uint32_t Wait() { return child_.Wait(); }

 private:
  os::Child child_;
};

TEST(Cgroups, FindsAPathInEveryHierarchy) {
  const ScratchTree root;
  ASSERT_TRUE(os::MakeDirs(root / "cpu/a/b", 0755));
  ASSERT_TRUE(os::MakeDirs(root / "memory/a/b", 0755));
  ASSERT_TRUE(os::MakeDirs(root / "pids/a", 0755));
  EXPECT_THAT(*cgroup::CgroupDirectories("/a/b", root.path()),
              UnorderedElementsAre(root / "cpu/a/b", root / "memory/a/b"));
  EXPECT_TRUE(cgroup::CgroupDirectories("/", root.path())->empty());
  EXPECT_TRUE(cgroup::CgroupDirectories("", root.path())->empty());
  EXPECT_TRUE(cgroup::CgroupDirectories("/a/../a/b", root.path())->empty());
  EXPECT_TRUE(cgroup::CgroupDirectories("../a", root.path())->empty());
}

TEST(Cgroups, RemovesWithChildrenAndOnlyBelowAHierarchy) {
  const ScratchTree root;
  ASSERT_TRUE(os::MakeDirs(root / "cpu/a/b/c", 0755));
  ASSERT_TRUE(os::MakeDirs(root / "outside", 0755));
  EXPECT_TRUE(cgroup::RemoveCgroups({root / "cpu/a", root / "cpu/a"}, cgroup::Leftovers::kSpare,
                                    Soon(), root.path()));
  EXPECT_FALSE(Exists(root / "cpu/a"));
  EXPECT_TRUE(
      cgroup::RemoveCgroups({root / "cpu", root / "cpu/x/../../outside", "/tmp", root.path()},
                            cgroup::Leftovers::kKill, Soon(), root.path()));
  EXPECT_TRUE(Exists(root / "cpu"));
  EXPECT_TRUE(Exists(root / "outside"));
}

TEST(Cgroups, RemovesWhatWasWrittenWhereNoHierarchyIsMounted) {
  const ScratchTree root;
  ASSERT_TRUE(os::MakeDirs(root / "hugetlb/ns/c/sub", 0755));
  ASSERT_TRUE(os::MakeDirs(root / "hugetlb/ns/other", 0755));
  Sleeper stranger;
  for (const char* file : {"c/cgroup.procs", "c/sub/hugetlb.2MB.limit_in_bytes", "other/tasks"}) {
    ASSERT_TRUE(WriteFile(root / "hugetlb/ns/" + file, std::to_string(stranger.pid()), 0644));
  }
  const Status removed =
      cgroup::RemoveCgroups({root / "hugetlb/ns/c"}, cgroup::Leftovers::kKill, Soon(), root.path());
  EXPECT_TRUE(removed) << removed.error().message;
  EXPECT_FALSE(Exists(root / "hugetlb/ns/c"));
  EXPECT_TRUE(Exists(root / "hugetlb/ns/other/tasks"));
  EXPECT_FALSE(stranger.Ended());
}

/// A cgroup of its own in some hierarchy of this machine; empty: not possible.
std::string RealCgroup() {
  for (const char* hierarchy :
       {"/sys/fs/cgroup/pids", "/sys/fs/cgroup/unified", cgroup::kCgroupRoot}) {
    const std::string path = Format("{}/gantry-toolkit-test-{}", hierarchy, getpid());
    if (Exists(std::string(hierarchy) + "/cgroup.procs") && mkdir(path.c_str(), 0755) == 0) {
      return path;
    }
  }
  return {};
}

TEST(Cgroups, KillsWhatIsLeft) {
  const std::string path = RealCgroup();
  if (path.empty()) {
    GTEST_SKIP() << "needs root and a writable cgroup";
  }
  ASSERT_TRUE(os::MakeDirs(path + "/sub", 0755));
  Sleeper first;
  Sleeper second;
  ASSERT_TRUE(WriteFile(path + "/cgroup.procs", std::to_string(first.pid()), 0));
  ASSERT_TRUE(WriteFile(path + "/sub/cgroup.procs", std::to_string(second.pid()), 0));
  const Status spared = cgroup::RemoveCgroups({path}, cgroup::Leftovers::kSpare, Soon());
  EXPECT_EQ(spared.error().code, Code::kFailedPrecondition);
  EXPECT_FALSE(first.Ended());
  const Status removed = cgroup::RemoveCgroups({path}, cgroup::Leftovers::kKill, Soon());
  EXPECT_TRUE(removed) << removed.error().message;
  EXPECT_FALSE(Exists(path));
  EXPECT_EQ(first.Wait(), 128U + SIGKILL);
  EXPECT_EQ(second.Wait(), 128U + SIGKILL);
}

TEST(DeepCgroups, AreRemoved) {
  const ScratchTree root;
  ASSERT_TRUE(os::MakeDirs(root / "cpu/c", 0755));
  MakeDeepTree(root / "cpu/c");
  OnSmallStack([&] {
    const Status removed = RemoveCgroups({root / "cpu/c"}, Leftovers::kKill, Soon(), root.path());
    EXPECT_TRUE(removed) << removed.error().message;
  });
  EXPECT_FALSE(Exists(root / "cpu/c"));
}

TEST(DeepCgroups, AreThawedOnEachLevel) {
  const ScratchTree root;
  ASSERT_TRUE(os::MakeDirs(root / "freezer/c/in/side", 0755));
  for (const char* file : {"c", "c/in", "c/in/side"}) {
    ASSERT_TRUE(WriteFile(root / "freezer/" + file + "/freezer.state", "FROZEN", 0644));
  }
  ThawCgroups({root / "cpu/c", root / "freezer/c"});
  for (const char* file : {"c", "c/in", "c/in/side"}) {
    EXPECT_EQ(ReadFile(root / "freezer/" + file + "/freezer.state", 100).value_or(""), "THAWED")
        << file;
  }
}

TEST(DeepCgroups, OfTheKernelWithWhatIsFrozenInThemAreKilled) {
  const std::string path = "/sys/fs/cgroup/freezer/gantry-toolkit-deep-" + std::to_string(getpid());
  if (mkdir(path.c_str(), 0755) != 0) {
    GTEST_SKIP() << "needs root and cgroup v1";
  }
  ASSERT_TRUE(os::MakeDirs(path + "/in", 0755));
  Sleeper frozen;
  ASSERT_TRUE(WriteFile(path + "/in/cgroup.procs", std::to_string(frozen.pid()), 0));
  ASSERT_TRUE(WriteFile(path + "/in/freezer.state", "FROZEN", 0));
  const Status removed = RemoveCgroups({path}, Leftovers::kKill, Soon());
  EXPECT_TRUE(removed) << removed.error().message;
  EXPECT_EQ(frozen.Wait(), 128U + SIGKILL);
  EXPECT_FALSE(Exists(path));
}

}  // namespace
}  // namespace gantry::cgroup
