// SPDX-License-Identifier: Apache-2.0
#include "core/setup/block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::setup {
namespace {

using testing::HasSubstr;

std::string TakenBack(const std::string& text) {
  const auto block = FindBlock(text, "f");
  return block && *block ? WithoutBlock(text, **block) : "no block";
}

TEST(Block, LeavesEveryFileAsItWas) {
  for (const std::string text : {"", "a = 1\n", "a = 1", "\n", "\n\n", "a = 1\r\n",
                                 "# BEGIN\nb = 1\n", "a = 1\n\n# nothing"}) {
    const std::string with = WithBlock(text, {}, "x = 1\n", {});
    EXPECT_THAT(with, testing::StartsWith(text));
    EXPECT_THAT(with, HasSubstr("\nx = 1\n"));
    EXPECT_EQ(TakenBack(with), text);
  }
}

TEST(Block, IsReplacedWhereItIs) {
  const std::string with = WithBlock("a = 1", {}, "x = 1\n", {});
  const std::string grown = with + "[b]\n";
  const auto block = FindBlock(grown, "f");
  ASSERT_TRUE(block && *block);
  const std::string again = WithBlock(grown, *block, "y = 2\n", {});
  EXPECT_THAT(again, testing::EndsWith("[b]\n"));
  EXPECT_EQ((*FindBlock(again, "f"))->body, "y = 2\n");
  // What follows needs the end of the line before.
  EXPECT_EQ(TakenBack(again), "a = 1\n[b]\n");
}

TEST(Block, RemembersWhatWasMadeForIt) {
  const std::string with = WithBlock("", {}, "x = 1\n", {.made_file = true, .made_folder = true});
  const auto block = *FindBlock(with, "f");
  EXPECT_TRUE(block->made_file);
  EXPECT_TRUE(block->made_folder);
  EXPECT_FALSE(block->ended_line);
  // A later one does not forget it.
  const auto later = *FindBlock(WithBlock(with, block, "y = 1\n", {}), "f");
  EXPECT_TRUE(later->made_file);
}

TEST(Block, IsRefusedWhereSomebodyHasEditedItsMarks) {
  const std::string with = WithBlock("", {}, "x = 1\n", {});
  const std::string begin = with.substr(0, with.find('\n') + 1);
  const std::string end = with.substr(with.rfind("# END"));
  for (const std::string& text : {begin, end, begin + begin + end, with + with, end + begin}) {
    const auto block = FindBlock(text, "/etc/f");
    ASSERT_FALSE(block.has_value()) << text;
    EXPECT_EQ(block.error().code, Code::kFailedPrecondition);
    EXPECT_THAT(block.error().message, testing::StartsWith("'/etc/f', line "));
  }
}

}  // namespace
}  // namespace gantry::setup
