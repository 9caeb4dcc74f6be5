// SPDX-License-Identifier: Apache-2.0
#include "core/os/fs.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "tests/unit/os/few_descriptors.h"

namespace gantry::os {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class FsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = TempDir::Create();
    ASSERT_TRUE(made);
    dir_ = std::move(*made);
  }

  std::string At(const std::string& name) const { return dir_.path() + "/" + name; }

  static mode_t ModeOf(const std::string& path) {
    struct stat status{};
    return lstat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
  }

  TempDir dir_;
};

using ReadFileTest = FsTest;
using WriteFileTest = FsTest;
using MakeDirsTest = FsTest;
using OpenWithoutLinksTest = FsTest;
using RemoveTreeTest = FsTest;
using TempDirTest = FsTest;

TEST_F(OpenWithoutLinksTest, FollowsNone) {
  ASSERT_TRUE(MakeDirs(At("a/b"), 0700));
  ASSERT_EQ(symlink("a", At("link").c_str()), 0);
  ASSERT_EQ(symlink("b", At("a/last").c_str()), 0);
  const auto found = OpenWithoutLinks(At("a/b"));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(ReadLink("/proc/self/fd/" + std::to_string(found->get())).value(), At("a/b"));
  const auto errno_of = [this](const std::string& name) {
    const auto opened = OpenWithoutLinks(At(name));
    return opened ? 0 : opened.error().sys_errno;
  };
  EXPECT_EQ(errno_of("link/b"), ELOOP);
  EXPECT_EQ(errno_of("a/last"), ELOOP);
  EXPECT_EQ(errno_of("none"), ENOENT);
}

TEST_F(MakeDirsTest, MakesWhatIsMissing) {
  ASSERT_TRUE(MakeDirs(At("a/b//c/"), 0711));
  EXPECT_EQ(ModeOf(At("a/b/c")), mode_t{0711});
  EXPECT_TRUE(MakeDirs(At("a/b/c"), 0700));
}

TEST_F(MakeDirsTest, RefusesAFileInTheWay) {
  ASSERT_TRUE(ReplaceFile(At("f"), "", 0600));
  EXPECT_EQ(MakeDirs(At("f"), 0700).error().code, Code::kFailedPrecondition);
  EXPECT_FALSE(MakeDirs(At("f/g"), 0700));
}

TEST_F(MakeDirsTest, FifoHasTheExactMode) {
  ASSERT_TRUE(MakeFifo(At("fifo"), 0622));
  EXPECT_EQ(ModeOf(At("fifo")), mode_t{0622});
  EXPECT_EQ(MakeFifo(At("fifo"), 0600).error().code, Code::kAlreadyExists);
}

TEST_F(TempDirTest, GoesWithItsObject) {
  std::string path;
  {
    auto made = TempDir::Create(At("tmp-"));
    ASSERT_TRUE(made);
    path = made->path();
    const TempDir moved = std::move(*made);
    EXPECT_EQ(ModeOf(path), mode_t{0700});
    ASSERT_TRUE(ReplaceFile(path + "/f", "x", 0600));
  }
  EXPECT_FALSE(Exists(path));
}

TEST(OpenFileLimit, IsRaisedToTheHardOne) {
  const test::FewDescriptors few(100);
  EXPECT_EQ(RaiseOpenFileLimit().value(), few.before().rlim_max);
}

}  // namespace
}  // namespace gantry::os
