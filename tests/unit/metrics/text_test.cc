// SPDX-License-Identifier: Apache-2.0
#include "core/metrics/text.h"

#include <chrono>

#include <gtest/gtest.h>

#include "core/metrics/figures.h"

namespace gantry::metrics {
namespace {

constexpr Family kCounted{"x_things_total", Kind::kCounter, "kind", "Things."};
constexpr Family kTook{"x_took_seconds", Kind::kHistogram, "", "Time."};

std::string Written(TextFormat format) {
  TextWriter out(format);
  out.Begin(kCounted);
  out.Add({{"kind", "a"}}, uint64_t{18446744073709551615U});
  out.Add({{"kind", "b"}, {"more", "c"}}, 0.5);
  return out.Finish();
}

TEST(MetricsTextWriter, WritesPrometheusText) {
  EXPECT_EQ(Written(TextFormat::kPrometheus),
            "# HELP x_things_total Things.\n"
            "# TYPE x_things_total counter\n"
            "x_things_total{kind=\"a\"} 18446744073709551615\n"
            "x_things_total{kind=\"b\",more=\"c\"} 0.5\n");
}

TEST(MetricsTextWriter, WritesOpenMetrics) {
  EXPECT_EQ(Written(TextFormat::kOpenMetrics),
            "# HELP x_things Things.\n"
            "# TYPE x_things counter\n"
            "x_things_total{kind=\"a\"} 18446744073709551615\n"
            "x_things_total{kind=\"b\",more=\"c\"} 0.5\n"
            "# EOF\n");
}

TEST(MetricsTextWriter, EscapesValuesAndCutsThem) {
  TextWriter out(TextFormat::kPrometheus);
  out.Begin(kCounted);
  out.Add({{"kind", "a\"b\\c\nd\te\x80\x7f"}}, uint64_t{1});
  out.Add({{"kind", std::string(1000, 'x')}}, uint64_t{1});
  const std::string text = out.Finish();
  EXPECT_TRUE(text.contains("{kind=\"a\\\"b\\\\c\\nd?e??\"} 1\n")) << text;
  EXPECT_TRUE(text.contains("\"" + std::string(128, 'x') + "\"")) << text;
}

TEST(MetricsTextWriter, AddsBucketsUp) {
  Histogram histogram;
  histogram.Add(std::chrono::milliseconds(1));
  histogram.Add(std::chrono::seconds(1));
  histogram.Add(std::chrono::hours(1));
  TextWriter out(TextFormat::kPrometheus);
  out.Begin(kTook);
  out.Add({}, histogram);
  EXPECT_EQ(out.Finish(),
            "# HELP x_took_seconds Time.\n"
            "# TYPE x_took_seconds histogram\n"
            "x_took_seconds_bucket{le=\"0.001\"} 1\n"
            "x_took_seconds_bucket{le=\"0.0025\"} 1\n"
            "x_took_seconds_bucket{le=\"0.005\"} 1\n"
            "x_took_seconds_bucket{le=\"0.01\"} 1\n"
            "x_took_seconds_bucket{le=\"0.025\"} 1\n"
            "x_took_seconds_bucket{le=\"0.05\"} 1\n"
            "x_took_seconds_bucket{le=\"0.1\"} 1\n"
            "x_took_seconds_bucket{le=\"0.25\"} 1\n"
            "x_took_seconds_bucket{le=\"0.5\"} 1\n"
            "x_took_seconds_bucket{le=\"1\"} 2\n"
            "x_took_seconds_bucket{le=\"2.5\"} 2\n"
            "x_took_seconds_bucket{le=\"5\"} 2\n"
            "x_took_seconds_bucket{le=\"10\"} 2\n"
            "x_took_seconds_bucket{le=\"30\"} 2\n"
            "x_took_seconds_bucket{le=\"60\"} 2\n"
            "x_took_seconds_bucket{le=\"+Inf\"} 3\n"
            "x_took_seconds_sum 3601.001\n"
            "x_took_seconds_count 3\n");
}

TEST(MetricsTextWriter, WritesBoundsAsOpenMetricsWantsThem) {
  TextWriter out(TextFormat::kOpenMetrics);
  out.Begin(kTook);
  out.Add({}, Histogram());
  const std::string text = out.Finish();
  EXPECT_TRUE(text.contains("le=\"1.0\"") && text.contains("le=\"0.5\"")) << text;
  EXPECT_FALSE(text.contains("le=\"1\"")) << text;
}

}  // namespace
}  // namespace gantry::metrics
