// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/file_identity.h>
#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"
#include "tests/unit/os/few_descriptors.h"

namespace gantry {
namespace {

using os::MakeDirs;
using os::MakeFifo;
using os::OpenDirectory;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class FilesTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = os::TempDir::Create();
    ASSERT_TRUE(made);
    dir_ = std::move(*made);
  }

  std::string At(const std::string& name) const { return dir_.path() + "/" + name; }

  static mode_t ModeOf(const std::string& path) {
    struct stat status{};
    return lstat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
  }

  os::TempDir dir_;
};

using ReadFileTest = FilesTest;
using WriteFileTest = FilesTest;
using ListDirectoryTest = FilesTest;
using RemoveTreeTest = FilesTest;

TEST_F(FilesTest, AreOthersWhenTheyHaveBeenReplaced) {
  ASSERT_TRUE(ReplaceFile(At("f"), "x", 0600));
  ASSERT_EQ(symlink(At("f").c_str(), At("l").c_str()), 0);
  const FileIdentity first = FileIdentity::Of(At("f")).value();
  EXPECT_EQ(FileIdentity::Of(At("f")).value(), first);
  EXPECT_EQ(FileIdentity::Of(At("l")).value(), first) << "a link leads to it";
  ASSERT_TRUE(ReplaceFile(At("f"), "x", 0600));
  EXPECT_NE(FileIdentity::Of(At("f")).value(), first);
  EXPECT_EQ(FileIdentity::Of(At("none")).error().code, Code::kNotFound);
}

TEST_F(ReadFileTest, GivesAllUpToTheLimit) {
  const std::string data(10000, 'x');
  ASSERT_TRUE(ReplaceFile(At("f"), data, 0600));
  EXPECT_EQ(ReadFile(At("f"), 10000).value(), data);
  const auto longer = ReadFile(At("f"), 9999);
  EXPECT_EQ(longer.error().code, Code::kInvalidArgument);
  EXPECT_THAT(longer.error().message, HasSubstr("longer than 9999 bytes"));
}

TEST_F(ReadFileTest, ReadsFilesWithoutASize) {
  EXPECT_THAT(ReadFile("/proc/self/status", 1 << 16).value(), HasSubstr("Pid:"));
}

TEST_F(ReadFileTest, SaysWhatIsMissing) {
  const auto missing = ReadFile(At("none"), 10);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_EQ(missing.error().message, "open '" + At("none") + "': ENOENT");
}

/// A FIFO would wait for somebody who writes; to open a device may do something.
TEST_F(ReadFileTest, OpensNothingButARegularFile) {
  ASSERT_EQ(mkfifo(At("fifo").c_str(), 0600), 0);
  const auto dir = OpenDirectory(dir_.path());
  const auto opened = ReadFile(At("fifo"), 10);
  EXPECT_EQ(opened.error().code, Code::kInvalidArgument);
  EXPECT_EQ(opened.error().message, "open '" + At("fifo") + "': it is no regular file");
  EXPECT_EQ(ReadFileAt(dir->get(), "fifo", 10).error().code, Code::kInvalidArgument);
  EXPECT_EQ(ReadTail(At("fifo"), 10).error().code, Code::kInvalidArgument);
  EXPECT_EQ(ReadFile("/dev/null", 10).error().code, Code::kInvalidArgument);
  EXPECT_EQ(ReadFile(dir_.path(), 10).error().code, Code::kInvalidArgument);
}

TEST_F(ReadFileTest, GivesTheLastBytes) {
  ASSERT_TRUE(ReplaceFile(At("f"), std::string(40000, 'x') + "end", 0600));
  EXPECT_EQ(ReadTail(At("f"), 4).value_or(""), "xend");
  EXPECT_EQ(ReadTail(At("f"), 90000)->size(), 40003U);
  EXPECT_EQ(ReadTail(At("g"), 1).error().code, Code::kNotFound);
}

TEST_F(ReadFileTest, BelowADirectoryRefusesALink) {
  ASSERT_TRUE(ReplaceFile(At("f"), "data", 0600));
  ASSERT_EQ(symlink("f", At("link").c_str()), 0);
  const auto dir = OpenDirectory(dir_.path());
  EXPECT_EQ(ReadFileAt(dir->get(), "f", 10).value(), "data");
  EXPECT_EQ(ReadFileAt(dir->get(), "link", 10).error().sys_errno, ELOOP);
  EXPECT_EQ(ReadLink(At("link")).value(), "f");
}

TEST_F(WriteFileTest, ReplacesWithTheExactModeAndLeavesNothingElse) {
  ASSERT_TRUE(ReplaceFile(At("f"), "old", 0600));
  ASSERT_TRUE(ReplaceFile(At("f"), "new", 0666));
  EXPECT_EQ(ReadFile(At("f"), 10).value(), "new");
  EXPECT_EQ(ModeOf(At("f")), mode_t{0666});
  EXPECT_THAT(ListDirectory(dir_.path(), 10).value(), UnorderedElementsAre("f"));
}

TEST_F(WriteFileTest, LeavesNothingBehindOnFailure) {
  ASSERT_EQ(mkdir(At("f").c_str(), 0700), 0);
  EXPECT_FALSE(ReplaceFile(At("f"), "data", 0600));
  EXPECT_THAT(ListDirectory(dir_.path(), 10).value(), UnorderedElementsAre("f"));
}

TEST_F(WriteFileTest, InPlaceNeedsTheFile) {
  EXPECT_EQ(WriteExisting(At("f"), "data").error().code, Code::kNotFound);
}

TEST_F(RemoveTreeTest, RemovesFilesAndTreesAndWhatIsGone) {
  ASSERT_TRUE(MakeDirs(At("t/a/b"), 0700));
  ASSERT_TRUE(MakeDirs(At("t/c"), 0700));
  ASSERT_TRUE(ReplaceFile(At("t/a/b/f"), "x", 0400));
  ASSERT_TRUE(ReplaceFile(At("t/g"), "x", 0400));
  ASSERT_TRUE(MakeFifo(At("t/c/fifo"), 0600));
  EXPECT_TRUE(RemoveTree(At("t/g")));
  EXPECT_FALSE(Exists(At("t/g")));
  EXPECT_TRUE(RemoveTree(At("t/")));
  EXPECT_FALSE(Exists(At("t")));
  EXPECT_TRUE(RemoveTree(At("t")));
  EXPECT_TRUE(RemoveTree(At("no/such")));
}

TEST_F(RemoveTreeTest, DoesNotFollowLinks) {
  ASSERT_TRUE(MakeDirs(At("kept/below"), 0700));
  ASSERT_TRUE(MakeDirs(At("t/a"), 0700));
  ASSERT_EQ(symlink("../../kept", At("t/a/link").c_str()), 0);
  ASSERT_EQ(symlink("kept", At("link").c_str()), 0);
  EXPECT_TRUE(RemoveTree(At("t")));
  EXPECT_TRUE(RemoveTree(At("link")));
  EXPECT_THAT(ListDirectory(dir_.path(), 10).value(), UnorderedElementsAre("kept"));
  EXPECT_TRUE(Exists(At("kept/below")));
}

TEST_F(RemoveTreeTest, NeedsNoDescriptorPerLevel) {
  UniqueFd current = OpenDirectory(dir_.path()).value();
  // Deeper than descriptors reach.
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(mkdirat(current.get(), "deep", 0700), 0);
    current.reset(openat(current.get(), "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  current.reset();
  const test::FewDescriptors few(64);
  const Status removed = RemoveTree(At("deep"));
  EXPECT_TRUE(removed) << removed.error().message;
  EXPECT_FALSE(Exists(At("deep")));
}

TEST_F(RemoveTreeTest, RemovesManyEntries) {
  for (int i = 0; i < 60; ++i) {
    const std::string name = std::to_string(i);
    ASSERT_TRUE(MakeDirs(At("many/" + name), 0700));
    ASSERT_TRUE(ReplaceFile(At("many/" + name + "/f"), name, 0600));
  }
  EXPECT_TRUE(RemoveTree(At("many")));
  EXPECT_FALSE(Exists(At("many")));
}

TEST_F(RemoveTreeTest, StopsAtABindMountOfTheSameFileSystem) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "mounting needs root";
  }
  ASSERT_TRUE(MakeDirs(At("kept"), 0700));
  ASSERT_TRUE(ReplaceFile(At("kept/f"), "x", 0600));
  ASSERT_TRUE(MakeDirs(At("t/mnt"), 0700));
  if (::mount(At("kept").c_str(), At("t/mnt").c_str(), nullptr, MS_BIND, nullptr) < 0) {
    GTEST_SKIP() << "mounting is not permitted here";
  }
  const Status removed = RemoveTree(At("t"));
  const Status root_removed = RemoveTree(At("t/mnt"));
  ASSERT_EQ(umount2(At("t/mnt").c_str(), MNT_DETACH), 0);
  EXPECT_EQ(removed.error().code, Code::kFailedPrecondition);
  EXPECT_EQ(root_removed.error().code, Code::kFailedPrecondition);
  EXPECT_TRUE(Exists(At("kept/f")));
}

TEST_F(RemoveTreeTest, RefusesWhatIsNoName) {
  EXPECT_EQ(RemoveTree("").error().code, Code::kInvalidArgument);
  EXPECT_EQ(RemoveTree("/").error().code, Code::kInvalidArgument);
  EXPECT_EQ(RemoveTree(At("..")).error().code, Code::kInvalidArgument);
  EXPECT_EQ(RemoveTreeAt(AT_FDCWD, "a/b").error().code, Code::kInvalidArgument);
}

TEST_F(ListDirectoryTest, StopsAtItsLimit) {
  EXPECT_THAT(ListDirectory(dir_.path(), 0).value(), IsEmpty());
  ASSERT_TRUE(ReplaceFile(At("f"), "", 0600));
  EXPECT_EQ(ListDirectory(dir_.path(), 0).error().code, Code::kInvalidArgument);
}

TEST(RandomName, HasTheLengthAndDiffers) {
  EXPECT_EQ(RandomName(300).size(), 300U);
  EXPECT_NE(RandomName(16), RandomName(16));
}

TEST_F(ListDirectoryTest, IsEmptyWhereThereIsNone) {
  EXPECT_THAT(ListDirectory(At("none")).value(), IsEmpty());
  ASSERT_TRUE(ReplaceFile(At("f"), "", 0600));
  EXPECT_THAT(ListDirectory(At("f")).value(), IsEmpty());
}

TEST_F(WriteFileTest, DoesNotFollowALink) {
  ASSERT_EQ(symlink("target", At("link").c_str()), 0);
  EXPECT_FALSE(WriteFile(At("link"), "x", 0600));
  EXPECT_FALSE(Exists(At("target")));
}

TEST_F(WriteFileTest, HasTheExactModeInPlaceToo) {
  ASSERT_TRUE(WriteFile(At("f"), "longer", 0600));
  ASSERT_TRUE(WriteFile(At("f"), "new", 0666));
  EXPECT_EQ(ReadFile(At("f"), 10).value(), "new");
  EXPECT_EQ(ModeOf(At("f")), mode_t{0666});
}

/// An execution's own name may look like what another one's file is written by.
TEST_F(WriteFileTest, OfWhatWasKilledNothingOfOthersIsRemoved) {
  for (const char* name : {"a.pid", "a.pid.abcdefgh.tmp", "a.pid.x.pid.abcdefgh.tmp", "a.pid.tmp",
                           "b.pid.abcdefgh.tmp"}) {
    ASSERT_TRUE(WriteFile(At(name), "", 0600));
  }
  EXPECT_TRUE(RemoveUnfinished(At("a.pid")));
  EXPECT_THAT(
      ListDirectory(dir_.path()).value(),
      UnorderedElementsAre("a.pid", "a.pid.x.pid.abcdefgh.tmp", "a.pid.tmp", "b.pid.abcdefgh.tmp"));
  EXPECT_TRUE(RemoveUnfinished(At("a.pid")));
  EXPECT_TRUE(RemoveUnfinished(At("none/a.pid")));
}

}  // namespace
}  // namespace gantry
