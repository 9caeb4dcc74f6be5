// SPDX-License-Identifier: Apache-2.0
#include "core/keeper/fd_store.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <gmock/gmock.h>

namespace gantry::keeper {
namespace {

UniqueFd Null() { return UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

TEST(FdStore, GivesASecondDescriptorAndKeepsItsOwn) {
  FdStore store;
  ASSERT_TRUE(store.Put("a", Null()));
  const auto first = store.Take("a");
  const auto second = store.Take("a");
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->get(), second->get());
  EXPECT_EQ(store.size(), 1U);
}

TEST(FdStore, KnowsNothingDropped) {
  FdStore store;
  ASSERT_TRUE(store.Put("a", Null()));
  store.Drop("a");
  store.Drop("a");
  EXPECT_EQ(store.Take("a").error().code, Code::kNotFound);
}

TEST(FdStore, RefusesWhenFullButReplaces) {
  FdStore store(2, 2);
  ASSERT_TRUE(store.Put("a", Null()));
  ASSERT_TRUE(store.Put("b", Null()));
  EXPECT_EQ(store.Put("c", Null()).error().code, Code::kResourceExhausted);
  EXPECT_TRUE(store.Put("a", Null()));
  EXPECT_THAT(store.Names(), testing::ElementsAre("a", "b"));
}

TEST(FdStore, LeavesRoomToTheOthers) {
  FdStore store(8);
  ASSERT_TRUE(store.Put("7/a", Null()));
  ASSERT_TRUE(store.Put("7/sandbox/b", Null()));
  EXPECT_EQ(store.Put("7/c", Null()).error().code, Code::kResourceExhausted);
  EXPECT_TRUE(store.Put("7/a", Null()));
  EXPECT_TRUE(store.Put("77/c", Null()));
  store.Drop("7/a");
  EXPECT_TRUE(store.Put("7/c", Null()));
}

TEST(FdStore, RefusesBadNamesAndNoDescriptor) {
  FdStore store;
  EXPECT_EQ(store.Put("", Null()).error().code, Code::kInvalidArgument);
  EXPECT_EQ(store.Put(std::string(257, 'x'), Null()).error().code, Code::kInvalidArgument);
  EXPECT_TRUE(store.Put(std::string(256, 'x'), Null()));
  EXPECT_EQ(store.Put("a", UniqueFd()).error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace gantry::keeper
