// SPDX-License-Identifier: Apache-2.0
//
// The checker itself: what it must not let through.
#include "tests/unit/metrics/grammar.h"

#include <string>

#include <gtest/gtest.h>

namespace gantry::test {
namespace {

constexpr char kHead[] = "# HELP a_total Text.\n# TYPE a_total counter\n";

TEST(MetricsGrammar, TakesWhatIsGood) {
  const auto read = ReadMetrics(
      std::string(kHead) + "a_total{x=\"1\\\"\\\\\\n\"} 3\n# HELP b B.\n# TYPE b gauge\nb 1e-05\n",
      false);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->at("a_total").samples.at(0).labels.at("x"), "1\"\\\n");
  EXPECT_EQ(SumOf(*read, "a_total", {{"x", "1\"\\\n"}}), 3);
  EXPECT_EQ(SumOf(*read, "a_total", {{"x", "2"}}), 0);
}

class MetricsGrammarBad : public testing::TestWithParam<const char*> {};

TEST_P(MetricsGrammarBad, IsRefused) {
  EXPECT_FALSE(ReadMetrics(std::string(kHead) + GetParam(), false)) << GetParam();
}

INSTANTIATE_TEST_SUITE_P(
    All, MetricsGrammarBad,
    testing::Values("a_total 1", "b 1\n", "a_total one\n", "a_total{x=\"1} 1\n",
                    "a_total{1x=\"1\"} 1\n", "a_total{x=\"\\t\"} 1\n", "a_total 1\na_total 2\n",
                    "a_total -1\n", "# HELP a_total Again.\n", "# TYPE b gauge\n", "# EOF\n",
                    "# HELP b B.\n# TYPE b counter\n", "a_total{x=\"1\",x=\"2\"} 1\n", "\n",
                    "# HELP h H.\n# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} "
                    "1\nh_sum 1\nh_count 1\n",
                    "# HELP h H.\n# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_sum 1\nh_count 2\n"));

TEST(MetricsGrammar, WantsOpenMetricsEnd) {
  const std::string text = "# HELP a Text.\n# TYPE a counter\na_total 1\n";
  EXPECT_FALSE(ReadMetrics(text, true));
  EXPECT_TRUE(ReadMetrics(text + "# EOF\n", true));
  EXPECT_FALSE(ReadMetrics(text + "# EOF\na_total 1\n", true));
}

}  // namespace
}  // namespace gantry::test
