// SPDX-License-Identifier: Apache-2.0
#include "core/os/listen.h"

#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"

namespace gantry::os {
namespace {

class LeftSocket : public testing::Test {
 protected:
  TempDir dir_ = *TempDir::Create();
  const std::string path_ = dir_.path() + "/s";
};

TEST_F(LeftSocket, IsRemovedWhereNobodyListens) {
  ASSERT_TRUE(ListenWherePlaced(path_));
  ASSERT_TRUE(Exists(path_)) << "its listener has gone and left it";
  EXPECT_TRUE(RemoveLeftSocket(path_));
  EXPECT_FALSE(Exists(path_));
  EXPECT_TRUE(RemoveLeftSocket(path_)) << "again: nothing";
}

TEST_F(LeftSocket, OfSomebodyStays) {
  const auto listener = ListenWherePlaced(path_);
  ASSERT_TRUE(listener);
  EXPECT_TRUE(RemoveLeftSocket(path_));
  EXPECT_TRUE(Exists(path_));
}

TEST_F(LeftSocket, ThatIsNoneStays) {
  ASSERT_TRUE(WriteFile(path_, "text", 0600));
  EXPECT_TRUE(RemoveLeftSocket(path_));
  EXPECT_TRUE(Exists(path_));
}

}  // namespace
}  // namespace gantry::os
