// SPDX-License-Identifier: Apache-2.0
//
// Trees that somebody else has made: of any depth, and with links in them.
#include <sys/mount.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/files/tree_walk.h>

#include "tests/unit/toolkit/files/deep_tree.h"

namespace gantry {
namespace {

class TreeWalk : public testing::Test {
 protected:
  void Make(const std::string& dir) { std::filesystem::create_directories(root_ + "/" + dir); }

  const ScratchTree scratch_;
  const std::string& root_ = scratch_.path();
};

TEST_F(TreeWalk, EntersBeforeAndLeavesAfterWhatIsInside) {
  Make("a/b");
  std::ofstream(root_ + "/a/file");
  std::vector<std::string> seen;
  const auto enter = [&](int dir) -> Status {
    seen.push_back(
        "in " + std::filesystem::read_symlink(Format("/proc/self/fd/{}", dir)).filename().string());
    return {};
  };
  const auto leave = [&](int, const std::string& name) -> Status {
    seen.push_back("out " + std::filesystem::path(name).filename().string());
    return {};
  };
  ASSERT_TRUE(WalkTree(root_ + "/a", {.enter = enter, .leave = leave}));
  EXPECT_THAT(seen, testing::ElementsAre("in a", "in b", "out b", "out a"));
}

TEST_F(TreeWalk, VisitsAllSiblings) {
  for (int i = 0; i < 300; ++i) {
    Make(Format("{}/x", i));
  }
  int entered = 0;
  ASSERT_TRUE(WalkTree(root_, {.enter = [&](int) -> Status {
                                 ++entered;
                                 return {};
                               },
                               .leave = {}}));
  EXPECT_EQ(entered, 601);
}

TEST_F(TreeWalk, FollowsNoLink) {
  Make("outside/dir");
  Make("tree");
  std::filesystem::create_directory_symlink(root_ + "/outside", root_ + "/tree/link");
  int entered = 0;
  const auto enter = [&](int) -> Status {
    ++entered;
    return {};
  };
  ASSERT_TRUE(WalkTree(root_ + "/tree", {.enter = enter, .leave = {}}));
  EXPECT_EQ(entered, 1);
  EXPECT_FALSE(WalkTree(root_ + "/tree/link", {.enter = enter, .leave = {}}));
}

TEST_F(TreeWalk, SaysThatTheRootIsAbsentAndEndsWithAnError) {
  EXPECT_EQ(WalkTree(root_ + "/none", {}).error().code, Code::kNotFound);
  Make("a/b");
  const Status ended =
      WalkTree(root_, {.enter = {}, .leave = [](int, const std::string& name) -> Status {
                         return Fail(Code::kAborted, "at {}", name);
                       }});
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().message, "at b");
}

TEST_F(TreeWalk, GoesOnWhereADirectoryWasRemovedUnderIt) {
  Make("a/x");
  Make("a/y");
  int entered = 0;
  int left = 0;
  const auto enter = [&](int dir) -> Status {
    // The root, `a`, and the first of the two: both have been listed, and both go.
    if (++entered == 3) {
      unlinkat(dir, "../x", AT_REMOVEDIR);
      unlinkat(dir, "../y", AT_REMOVEDIR);
    }
    return {};
  };
  const auto leave = [&](int, const std::string&) -> Status {
    ++left;
    return {};
  };
  const Status walked = WalkTree(root_, {.enter = enter, .leave = leave});
  EXPECT_TRUE(walked) << walked.error().message;
  EXPECT_EQ(entered, 3);
  EXPECT_EQ(left, 3);
  EXPECT_TRUE(std::filesystem::is_empty(root_ + "/a"));
}

TEST_F(TreeWalk, AnyDepthWillDo) {
  MakeDeepTree(root_);
  OnSmallStack([this] {
    int entered = 0;
    const auto enter = [&](int) -> Status {
      ++entered;
      return {};
    };
    const Status walked = WalkTree(root_, {.enter = enter, .leave = {}});
    EXPECT_TRUE(walked) << walked.error().message;
    EXPECT_EQ(entered, kDeepLevels + 1);
  });
}

TEST_F(TreeWalk, RemovesWhatIsTooDeepForAPath) {
  Make("tree");
  MakeDeepTree(root_ + "/tree", [](int dir, bool) { PutFile(dir, "file", "x"); });
  OnSmallStack([this] {
    const Status removed = RemoveTree(root_ + "/tree");
    EXPECT_TRUE(removed) << removed.error().message;
  });
  EXPECT_FALSE(Exists(root_ + "/tree"));
}

TEST_F(TreeWalk, LeavesOutWhatIsMounted) {
  Make("tree/mount");
  if (::mount("t", (root_ + "/tree/mount").c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "needs root to mount";
  }
  Make("tree/mount/inside");
  int entered = 0;
  const auto enter = [&](int) -> Status {
    ++entered;
    return {};
  };
  EXPECT_TRUE(WalkTree(root_ + "/tree", {.enter = enter, .leave = {}}));
  EXPECT_EQ(entered, 1);
  EXPECT_EQ(RemoveTree(root_ + "/tree").error().code, Code::kFailedPrecondition);
  EXPECT_TRUE(Exists(root_ + "/tree/mount/inside"));
  umount2((root_ + "/tree/mount").c_str(), MNT_DETACH);
}

}  // namespace
}  // namespace gantry
