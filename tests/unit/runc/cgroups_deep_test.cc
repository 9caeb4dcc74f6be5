// SPDX-License-Identifier: Apache-2.0
//
// Cgroups that a container has made below its own.
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "plugins/runc/cgroups.h"
#include "tests/unit/runc/fakes.h"
#include "tests/unit/toolkit/files/deep_tree.h"

namespace gantry::runc {
namespace {

Deadline Later() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

TEST(DeepCgroups, AreRemoved) {
  const ScratchTree root;
  MakeDir(root / "cpu/c");
  MakeDeepTree(root / "cpu/c");
  OnSmallStack([&] {
    const Status removed = RemoveCgroups({root / "cpu/c"}, Leftovers::kKill, Later(), root.path());
    EXPECT_TRUE(removed) << removed.error().message;
  });
  EXPECT_FALSE(IsThere(root / "cpu/c"));
}

TEST(DeepCgroups, AreThawedOnEachLevel) {
  const TempDir root;
  MakeDir(root / "freezer/c/in/side");
  for (const char* file : {"c", "c/in", "c/in/side"}) {
    Write(root / "freezer/" + file + "/freezer.state", "FROZEN");
  }
  ThawCgroups({root / "cpu/c", root / "freezer/c"});
  for (const char* file : {"c", "c/in", "c/in/side"}) {
    EXPECT_EQ(Slurp(root / "freezer/" + file + "/freezer.state"), "THAWED") << file;
  }
}

TEST(DeepCgroups, OfTheKernelWithWhatIsFrozenInThemAreKilled) {
  const std::string path = "/sys/fs/cgroup/freezer/gantry-runc-deep-" + std::to_string(getpid());
  if (mkdir(path.c_str(), 0755) != 0) {
    GTEST_SKIP() << "needs root and cgroup v1";
  }
  MakeDir(path + "/in");
  const auto frozen = RunShell("sleep 1000");
  ASSERT_TRUE(WriteFile(path + "/in/cgroup.procs", std::to_string(frozen->pid().value), 0));
  ASSERT_TRUE(WriteFile(path + "/in/freezer.state", "FROZEN", 0));
  const Status removed = RemoveCgroups({path}, Leftovers::kKill, Later());
  EXPECT_TRUE(removed) << removed.error().message;
  EXPECT_TRUE(frozen->Wait(std::chrono::seconds(60)));
  EXPECT_FALSE(IsThere(path));
}

}  // namespace
}  // namespace gantry::runc
