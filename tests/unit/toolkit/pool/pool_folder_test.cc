// SPDX-License-Identifier: Apache-2.0
#include "core/toolkit/pool/pool_folder.h"

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/testing/sandbox_context.h>
#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"
#include "tests/unit/toolkit/names_in.h"

namespace gantry {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::chrono::seconds kFolderLimit{20};

class PoolFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = os::TempDir::Create();
    ASSERT_TRUE(made);
    dir_ = std::move(*made);
    root_ = dir_.path() + "/state/runsc";
  }

  std::shared_ptr<HostProcess> Sleeper() {
    SpawnRequest request;
    request.argv = {"/bin/sleep", "1000"};
    auto process = context_.Spawn(std::move(request));
    EXPECT_TRUE(process);
    return *process;
  }

  /// What an engine leaves that is killed.
  std::string Left() const {
    const std::string path = root_ + "/warm/left/1";
    EXPECT_TRUE(PoolFolder::Make(root_));
    EXPECT_EQ(mkdir((root_ + "/warm/left").c_str(), 0700), 0);
    EXPECT_EQ(mkdir(path.c_str(), 0700), 0);
    return path;
  }

  os::TempDir dir_;
  std::string root_;
  FakeSandboxContext context_;
};

TEST_F(PoolFolderTest, IsItsOwnersAlone) {
  const auto folder = PoolFolder::Make(root_);
  ASSERT_TRUE(folder) << folder.error().message;
  const auto entry = (*folder)->NewEntry();
  ASSERT_TRUE(entry);
  for (const std::string& path : {root_, (*folder)->path(), *entry}) {
    struct stat info{};
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0700U) << path;
  }
}

TEST_F(PoolFolderTest, GoesWithItsEngine) {
  {
    const auto folder = PoolFolder::Make(root_);
    ASSERT_TRUE(folder);
    ASSERT_TRUE((*folder)->NewEntry());
    EXPECT_THAT(NamesIn(root_ + "/warm"), SizeIs(1));
  }
  EXPECT_THAT(NamesIn(root_ + "/warm"), IsEmpty());
}

TEST_F(PoolFolderTest, LeavesThatOfAnotherEngineWhichLives) {
  const auto other = PoolFolder::Make(root_);
  ASSERT_TRUE(other);
  const auto entry = (*other)->NewEntry();
  ASSERT_TRUE(entry);
  const auto process = Sleeper();
  ASSERT_TRUE(NoteProcess(*entry, *process));
  ASSERT_TRUE(PoolFolder::Make(root_));
  EXPECT_TRUE(Exists(*entry));
  EXPECT_FALSE(process->Ended());
}

TEST_F(PoolFolderTest, EndsWhatAnEngineHasLeft) {
  const std::string entry = Left();
  const auto process = Sleeper();
  ASSERT_TRUE(NoteProcess(entry, *process));
  const auto folder = PoolFolder::Make(root_);
  ASSERT_TRUE(folder);
  EXPECT_TRUE(process->Wait(kFolderLimit));
  EXPECT_THAT(NamesIn(root_ + "/warm"), SizeIs(1));
}

TEST_F(PoolFolderTest, EndsNobodyWhoHasTheNumberByNow) {
  const std::string entry = Left();
  const auto process = Sleeper();
  ASSERT_TRUE(WriteFile(
      entry + "/process",
      std::to_string(process->pid().value) + " " + std::to_string(process->start_time() + 1),
      0600));
  ASSERT_TRUE(PoolFolder::Make(root_));
  EXPECT_FALSE(process->Ended());
  EXPECT_THAT(NamesIn(root_ + "/warm"), IsEmpty());
}

TEST_F(PoolFolderTest, EndsNobodyWhoWasTaken) {
  const std::string entry = Left();
  const auto process = Sleeper();
  ASSERT_TRUE(NoteProcess(entry, *process));
  ASSERT_TRUE(ForgetProcess(entry));
  ASSERT_TRUE(ForgetProcess(entry));
  ASSERT_TRUE(PoolFolder::Make(root_));
  EXPECT_FALSE(process->Ended());
}

TEST_F(PoolFolderTest, RemovesDamagedNotes) {
  const std::string entry = Left();
  for (const char* text : {"", "x", "1 ", " 1", "0 0", "-1 5", "99999999999999999999 1"}) {
    ASSERT_TRUE(os::MakeDirs(entry, 0700));
    ASSERT_TRUE(WriteFile(entry + "/process", text, 0600));
    ASSERT_TRUE(PoolFolder::Make(root_)) << text;
    EXPECT_FALSE(Exists(entry)) << text;
  }
}

TEST_F(PoolFolderTest, SaysWhereItCannotBe) {
  ASSERT_TRUE(WriteFile(dir_.path() + "/state", "in the way", 0600));
  const auto folder = PoolFolder::Make(root_);
  ASSERT_FALSE(folder);
  EXPECT_THAT(folder.error().message, testing::HasSubstr("'" + root_));
}

}  // namespace
}  // namespace gantry
