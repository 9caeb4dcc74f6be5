// SPDX-License-Identifier: Apache-2.0
#include "core/setup/diff.h"

#include <gtest/gtest.h>

namespace gantry::setup {
namespace {

TEST(UnifiedDiff, ShowsLinesThatCame) {
  EXPECT_EQ(UnifiedDiff("f", "1\n2\n3\n4\n5\n", "1\n2\n3\n4\nnew\n5\n"),
            "--- f\n+++ f\n@@ -2,4 +2,5 @@\n 2\n 3\n 4\n+new\n 5\n");
}

TEST(UnifiedDiff, ShowsLinesThatChange) {
  EXPECT_EQ(UnifiedDiff("f", "a\nb\nc\n", "a\nB\nc\n"),
            "--- f\n+++ f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
}

TEST(UnifiedDiff, ShowsFilesThatComeAndGo) {
  EXPECT_EQ(UnifiedDiff("f", std::nullopt, "a\n"), "--- /dev/null\n+++ f\n@@ -0,0 +1,1 @@\n+a\n");
  EXPECT_EQ(UnifiedDiff("f", "a\n", std::nullopt), "--- f\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a\n");
}

TEST(UnifiedDiff, SaysWhereALastLineHasNoEnd) {
  EXPECT_EQ(UnifiedDiff("f", "a", "a\nb\n"),
            "--- f\n+++ f\n@@ -1,1 +1,2 @@\n-a\n\\ No newline at end of file\n+a\n+b\n");
}

TEST(UnifiedDiff, IsEmptyForWhatIsEqual) {
  EXPECT_EQ(UnifiedDiff("f", "a", "a"), "");
  EXPECT_EQ(UnifiedDiff("f", std::nullopt, std::nullopt), "");
}

TEST(UnifiedDiff, TakesEqualLinesOnce) {
  EXPECT_EQ(UnifiedDiff("f", "a\na\n", "a\na\na\n"), "--- f\n+++ f\n@@ -1,2 +1,3 @@\n a\n a\n+a\n");
}

}  // namespace
}  // namespace gantry::setup
