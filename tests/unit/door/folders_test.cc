// SPDX-License-Identifier: Apache-2.0
#include "core/door/folders.h"

#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"

namespace gantry::door {
namespace {

class FoldersTest : public testing::Test {
 protected:
  const os::TempDir root_ = *os::TempDir::Create();
  const Folders folders_{root_.path() + "/sandboxes"};
  const SandboxKey key_{"k8s.io", "p1"};
};

TEST_F(FoldersTest, AreNotThereAtFirst) {
  EXPECT_EQ(folders_.Address(key_).error().code, Code::kNotFound);
  EXPECT_EQ(folders_.All()->size(), 0U);
  EXPECT_TRUE(folders_.Remove(key_));
}

TEST_F(FoldersTest, AreMadeOnce) {
  ASSERT_TRUE(folders_.Make(key_));
  EXPECT_EQ(folders_.Make(key_).error().code, Code::kAlreadyExists);
  EXPECT_EQ(folders_.Address(key_).error().code, Code::kNotFound);
}

TEST_F(FoldersTest, SayWhereTheSocketIs) {
  ASSERT_TRUE(folders_.Make(key_));
  ASSERT_TRUE(folders_.SetAddress(key_, "/run/gantry/s/01"));
  EXPECT_EQ(*folders_.Address(key_), "/run/gantry/s/01");
}

TEST_F(FoldersTest, SayHowFarEachHasCome) {
  const Stage stages[] = {Stage::kCreating, Stage::kCreated, Stage::kStarting, Stage::kStarted};
  for (const Stage stage : stages) {
    const SandboxKey key{"k8s.io", std::string(StageName(stage))};
    ASSERT_TRUE(folders_.Make(key));
    ASSERT_TRUE(folders_.SetStage(key, stage));
  }
  const auto all = folders_.All();
  ASSERT_TRUE(all);
  EXPECT_EQ(all->size(), 4U);
  for (const Folders::Left& left : *all) {
    EXPECT_EQ(left.key.id, StageName(left.stage));
  }
}

TEST_F(FoldersTest, WithoutAStageWereBeingMade) {
  ASSERT_TRUE(folders_.Make(key_));
  ASSERT_TRUE(RemoveFile(folders_.PathOf(key_) + "/stage"));
  const auto all = folders_.All();
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 1U);
  EXPECT_EQ(all->front().stage, Stage::kCreating);
}

TEST_F(FoldersTest, AreRemovedWithWhatIsInThem) {
  ASSERT_TRUE(folders_.Make(key_));
  ASSERT_TRUE(WriteFile(folders_.PathOf(key_) + "/gantry.record", "x", 0600));
  EXPECT_TRUE(folders_.Remove(key_));
  EXPECT_FALSE(Exists(folders_.PathOf(key_)));
  EXPECT_TRUE(folders_.Make(key_));
}

TEST_F(FoldersTest, AreNowhereElse) {
  for (const char* id : {"", "..", "a/b", "../x", "a\nb"}) {
    const SandboxKey key{"k8s.io", id};
    EXPECT_EQ(folders_.Make(key).error().code, Code::kInvalidArgument) << id;
    EXPECT_EQ(folders_.Address(key).error().code, Code::kInvalidArgument) << id;
    EXPECT_EQ(folders_.Remove(key).error().code, Code::kInvalidArgument) << id;
  }
  EXPECT_EQ(folders_.Make({"..", "p1"}).error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace gantry::door
