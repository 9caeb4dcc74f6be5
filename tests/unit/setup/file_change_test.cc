// SPDX-License-Identifier: Apache-2.0
#include "core/setup/file_change.h"

#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"

namespace gantry::setup {
namespace {

using testing::HasSubstr;

class FileChangeTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = std::move(*os::TempDir::Create()); }

  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }

  std::string Make(const std::string& name, const std::string& text, mode_t mode = 0644) {
    EXPECT_TRUE(WriteFile(Path(name), text, mode));
    return Path(name);
  }

  std::string TextOf(const std::string& path) { return *ReadFile(path, 1 << 20); }

  os::TempDir folder_;
};

TEST_F(FileChangeTest, KeepsModeAndAttributes) {
  const std::string path = Make("c.toml", "old", 0640);
  const bool attributes = setxattr(path.c_str(), "user.note", "x", 1, 0) == 0;
  ASSERT_TRUE(Apply({.path = path, .before = "old", .after = "new"}));
  EXPECT_EQ(TextOf(path), "new");
  struct stat status{};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640U);
  char value = 0;
  EXPECT_EQ(getxattr(path.c_str(), "user.note", &value, 1), attributes ? 1 : -1);
  EXPECT_EQ(ListDirectory(folder_.path())->size(), 1U) << "something was left beside it";
}

TEST_F(FileChangeTest, KeepsTheOwner) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "only root gives files away";
  }
  const std::string path = Make("c.toml", "old");
  ASSERT_EQ(chown(path.c_str(), 12, 34), 0);
  ASSERT_TRUE(Apply({.path = path, .before = "old", .after = "new"}));
  struct stat status{};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 12U);
  EXPECT_EQ(status.st_gid, 34U);
}

TEST_F(FileChangeTest, MakesFileAndFolderAndTakesBothBack) {
  const std::string path = Path("conf.d/gantry.toml");
  ASSERT_TRUE(Apply({.path = path, .before = std::nullopt, .after = "x"}));
  EXPECT_EQ(TextOf(path), "x");
  ASSERT_TRUE(Apply({.path = path, .before = "x", .after = std::nullopt, .remove_folder = true}));
  EXPECT_FALSE(Exists(Path("conf.d")));
}

TEST_F(FileChangeTest, LeavesAFolderWithMoreInIt) {
  const std::string path = Path("conf.d/gantry.toml");
  ASSERT_TRUE(Apply({.path = path, .before = std::nullopt, .after = "x"}));
  Make("conf.d/other.toml", "y");
  ASSERT_TRUE(Apply({.path = path, .before = "x", .after = std::nullopt, .remove_folder = true}));
  EXPECT_FALSE(Exists(path));
  EXPECT_TRUE(Exists(Path("conf.d/other.toml")));
}

TEST_F(FileChangeTest, IsNotMadeOfWhatSomebodyElseHasWritten) {
  const std::string path = Make("c.toml", "theirs");
  const Status applied = Apply({.path = path, .before = "old", .after = "new"});
  ASSERT_FALSE(applied.has_value());
  EXPECT_EQ(applied.error().code, Code::kAborted);
  EXPECT_EQ(TextOf(path), "theirs");
}

TEST_F(FileChangeTest, RefusesLinks) {
  const std::string path = Make("c.toml", "text");
  ASSERT_EQ(symlink("c.toml", Path("soft.toml").c_str()), 0);
  const auto soft = ReadForChange(Path("soft.toml"));
  ASSERT_FALSE(soft.has_value());
  EXPECT_THAT(soft.error().message, HasSubstr("symbolic link to 'c.toml'"));
  ASSERT_EQ(link(path.c_str(), Path("hard.toml").c_str()), 0);
  EXPECT_THAT(ReadForChange(path).error().message, HasSubstr("2 names"));
}

TEST_F(FileChangeTest, RefusesWhatIsNoFile) {
  ASSERT_EQ(mkdir(Path("c.toml").c_str(), 0755), 0);
  EXPECT_THAT(ReadForChange(Path("c.toml")).error().message, HasSubstr("no regular file"));
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0644), 0);
  EXPECT_THAT(ReadForChange(Path("fifo")).error().message, HasSubstr("no regular file"));
}

TEST_F(FileChangeTest, RefusesAFolderOfEverybody) {
  const std::string path = Make("c.toml", "text");
  ASSERT_EQ(chmod(folder_.path().c_str(), 0777), 0);
  EXPECT_THAT(ReadForChange(path).error().message, HasSubstr("chmod o-w"));
}

TEST_F(FileChangeTest, OfNothingIsNothing) {
  const auto text = ReadForChange(Path("none/c.toml"));
  ASSERT_TRUE(text.has_value());
  EXPECT_FALSE(text->has_value());
  EXPECT_TRUE(CheckWritable(Path("none/deeper/c.toml")));
}

TEST_F(FileChangeTest, SeesBeforehandThatItCannotBeMade) {
  const Status writable = CheckWritable("/proc/sys/none.toml");
  ASSERT_FALSE(writable.has_value());
  EXPECT_THAT(writable.error().message, HasSubstr("'/proc/sys/none.toml'"));
}

}  // namespace
}  // namespace gantry::setup
