// SPDX-License-Identifier: Apache-2.0
#include "core/metrics/figures.h"

#include <gtest/gtest.h>

namespace gantry::metrics {
namespace {

using namespace std::chrono_literals;

TEST(MetricsHistogram, CountsWhatIsOnABoundBelowIt) {
  Histogram histogram;
  histogram.Add(0ns);
  histogram.Add(1ms);
  histogram.Add(1ms + 1ns);
  histogram.Add(60s);
  histogram.Add(61s);
  EXPECT_EQ(histogram.buckets().front(), 2U);
  EXPECT_EQ(histogram.buckets().at(1), 1U);
  EXPECT_EQ(histogram.buckets().at(Histogram::kBounds.size() - 1), 1U);
  EXPECT_EQ(histogram.buckets().back(), 1U);
  EXPECT_EQ(histogram.sum(), 121s + 2ms + 1ns);
}

TEST(MetricsEnding, IsWhatContainerdIsTold) {
  EXPECT_EQ(EndingOf(0, false), Ending::kZero);
  EXPECT_EQ(EndingOf(1, false), Ending::kNonZero);
  EXPECT_EQ(EndingOf(128, false), Ending::kNonZero);
  EXPECT_EQ(EndingOf(137, false), Ending::kSignal);
  EXPECT_EQ(EndingOf(143, true), Ending::kSignal);
  EXPECT_EQ(EndingOf(137, true), Ending::kOutOfMemory);
  EXPECT_EQ(EndingOf(255, false), Ending::kNonZero);
}

TEST(MetricsFigures, KeepCallsApartByTheirLabels) {
  Figures figures;
  figures.Call({"runc", "Start", "init"}, 1ms, false);
  figures.Call({"runc", "Start", "init"}, 1ms, true);
  figures.Call({"runc", "Start", "exec"}, 1ms, false);
  ASSERT_EQ(figures.calls.size(), 2U);
  const CallFigures& init = figures.calls.at({"runc", "Start", "init"});
  EXPECT_EQ(init.failures, 1U);
  EXPECT_EQ(init.took.buckets().front(), 2U);
}

}  // namespace
}  // namespace gantry::metrics
