// SPDX-License-Identifier: Apache-2.0
//
// Whose a run directory may be.
#include "core/link/run_dir.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"

namespace gantry::link {
namespace {

using testing::HasSubstr;

constexpr uid_t kSomebody = 12345;

class RunDirTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "only root gives files away";
    }
    ASSERT_TRUE(os::MakeDirs(dir_, 0700));
  }

  static void ExpectRefused(const std::string& dir, const std::string& why) {
    const Status checked = CheckRunDir(dir);
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().code, Code::kPermissionDenied);
    EXPECT_THAT(checked.error().message, HasSubstr(why));
  }

  const os::TempDir temp_ = *os::TempDir::Create();
  const std::string parent_ = temp_.path() + "/a";
  const std::string dir_ = parent_ + "/run";
};

TEST_F(RunDirTest, OfRootAloneIsGood) {
  EXPECT_TRUE(CheckRunDir(dir_));
  ASSERT_EQ(chmod(dir_.c_str(), 0755), 0);
  EXPECT_TRUE(CheckRunDir(dir_));
  EXPECT_TRUE(CheckRunDir("/run"));
}

TEST_F(RunDirTest, OfSomebodyElseIsRefused) {
  ASSERT_EQ(chown(dir_.c_str(), kSomebody, 0), 0);
  ExpectRefused(dir_, "'" + dir_ + "' is owned by uid 12345");
}

TEST_F(RunDirTest, WhereOthersMayWriteIsRefused) {
  for (const mode_t mode : {0777U, 0775U, 0702U, 01777U}) {
    ASSERT_EQ(chmod(dir_.c_str(), mode), 0);
    ExpectRefused(dir_, "others may write in '" + dir_ + "'");
  }
}

TEST_F(RunDirTest, BelowSomebodyElsesIsRefused) {
  ASSERT_EQ(chown(parent_.c_str(), kSomebody, 0), 0);
  ExpectRefused(dir_, "'" + parent_ + "' is owned by uid 12345");
  ASSERT_EQ(chown(parent_.c_str(), 0, 0), 0);
  ASSERT_EQ(chmod(parent_.c_str(), 0777), 0);
  ExpectRefused(dir_, "others may write in '" + parent_ + "'");
  // As /tmp: nobody renames there what is not his.
  ASSERT_EQ(chmod(parent_.c_str(), 01777), 0);
  EXPECT_TRUE(CheckRunDir(dir_));
}

TEST_F(RunDirTest, BehindALinkIsWhatTheLinkLeadsTo) {
  const std::string link = temp_.path() + "/link";
  ASSERT_EQ(symlink(dir_.c_str(), link.c_str()), 0);
  EXPECT_TRUE(CheckRunDir(link));
  ASSERT_EQ(chmod(parent_.c_str(), 0777), 0);
  ExpectRefused(link, "others may write in '" + parent_ + "'");
  ASSERT_EQ(chmod(parent_.c_str(), 0755), 0);
  ASSERT_EQ(lchown(link.c_str(), kSomebody, 0), 0);
  ExpectRefused(link, "'" + link + "' is owned by uid 12345");
}

TEST_F(RunDirTest, ThatIsAbsentIsNotFound) {
  EXPECT_EQ(CheckRunDir(dir_ + "/none").error().code, Code::kNotFound);
  EXPECT_EQ(CheckRunDir("relative").error().code, Code::kInvalidArgument);
}

TEST_F(RunDirTest, AProgramAndItsFolderAreRootsToo) {
  const std::string program = dir_ + "/program";
  ASSERT_TRUE(ReplaceFile(program, "", 0755));
  EXPECT_TRUE(CheckProgram(program));
  EXPECT_TRUE(CheckProgram("/bin/sh"));
  EXPECT_EQ(CheckProgram(dir_).error().code, Code::kInvalidArgument);
  ASSERT_EQ(chmod(program.c_str(), 0775), 0);
  const Status refused = CheckProgram(program);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              HasSubstr("execute '" + program + "': others may write in '" + program + "'"));
  ASSERT_EQ(chmod(program.c_str(), 0755), 0);
  ASSERT_EQ(chown(parent_.c_str(), kSomebody, 0), 0);
  EXPECT_TRUE(CheckProgram(program)) << "as in a tree that a user builds with sudo";
  ASSERT_EQ(chown(dir_.c_str(), kSomebody, 0), 0);
  EXPECT_EQ(CheckProgram(program).error().code, Code::kPermissionDenied);
}

TEST_F(RunDirTest, OnlyRootMayListenThere) {
  const UniqueFd mine = *ListenUnix(dir_ + "/mine.sock");
  EXPECT_TRUE(ConnectIn(dir_, "mine.sock"));
  EXPECT_EQ(ConnectIn(dir_, "none.sock").error().code, Code::kNotFound);
  // Who listens is who had called listen(2), whoever has the socket now.
  for (const std::string& path : {temp_.path(), parent_}) {
    ASSERT_EQ(chmod(path.c_str(), 0755), 0);
  }
  ASSERT_EQ(chmod(dir_.c_str(), 0777), 0);
  int ready[2];
  int end[2];
  ASSERT_EQ(pipe(ready) + pipe(end), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(end[1]);
    const bool dropped = setuid(kSomebody) == 0;
    const auto socket = ListenUnix(dir_ + "/other.sock");
    char byte = dropped && socket ? 'y' : 'n';
    const bool said = write(ready[1], &byte, 1) == 1;
    _exit(said && read(end[0], &byte, 1) == 0 ? 0 : 1);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  ASSERT_EQ(chmod(dir_.c_str(), 0755), 0);
  const auto connected = ConnectIn(dir_, "other.sock");
  close(end[1]);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  for (const int fd : {ready[0], ready[1], end[0]}) {
    close(fd);
  }
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().code, Code::kPermissionDenied);
  EXPECT_THAT(connected.error().message, HasSubstr("uid 12345 listens there"));
}

}  // namespace
}  // namespace gantry::link
