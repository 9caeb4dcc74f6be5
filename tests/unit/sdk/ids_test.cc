// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include <gantry/ids.h>

namespace gantry {
namespace {

TEST(Ids, TakeWhatContainerdTakes) {
  for (const char* good : {"a", "a1", "A-b_c.d", "0123", "x-1"}) {
    EXPECT_TRUE(ContainerId::Parse(good)) << good;
  }
}

TEST(Ids, RefuseWhatWouldBeAPathOrAFlag) {
  for (const std::string bad :
       {"", ".", "..", "a/b", "/a", "-a", "a-", "a..b", "a b", "a\nb", "\xc3\xa4"}) {
    const auto refused = ContainerId::Parse(bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().code, Code::kInvalidArgument) << bad;
  }
  EXPECT_FALSE(ContainerId::Parse(std::string("a\0b", 3)));
}

TEST(Ids, AreBounded) {
  EXPECT_TRUE(ContainerId::Parse(std::string(76, 'a')));
  const auto refused = ContainerId::Parse(std::string(10'000, 'a'));
  ASSERT_FALSE(refused);
  EXPECT_LT(refused.error().message.size(), 300U) << "the error does not repeat it";
}

TEST(Ids, OfNamespacesFollowTheSameRule) {
  EXPECT_TRUE(Namespace::Parse("k8s.io"));
  EXPECT_FALSE(Namespace::Parse("k8s/io"));
}

TEST(Ids, CompareByText) {
  EXPECT_EQ(*ContainerId::Parse("a"), *ContainerId::Parse("a"));
  EXPECT_LT(*ContainerId::Parse("a"), *ContainerId::Parse("b"));
  EXPECT_TRUE(ExecId().empty());
}

}  // namespace
}  // namespace gantry
