// SPDX-License-Identifier: Apache-2.0
//
// All that is served: that it is what its formats want, is named by Prometheus' rules, and is in
// the documentation.
#include "core/metrics/render.h"

#include <algorithm>
#include <chrono>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "core/metrics/families.h"
#include "tests/unit/metrics/full_moment.h"
#include "tests/unit/metrics/grammar.h"

namespace gantry::metrics {
namespace {

using test::FullMoment;
using test::SumOf;

/// What is served, read strictly.
test::MetricsText Served(const Moment& moment, TextFormat format) {
  auto read = test::ReadMetrics(Render(moment, format), format == TextFormat::kOpenMetrics);
  EXPECT_TRUE(read) << read.error().message;
  return read ? std::move(*read) : test::MetricsText();
}

TEST(MetricsRender, SaysWhatThereIs) {
  const test::MetricsText served = Served(FullMoment(), TextFormat::kPrometheus);
  EXPECT_EQ(SumOf(served, "gantry_engine_start_time_seconds"), 1'700'000'000.5);
  EXPECT_EQ(SumOf(served, "gantry_containers", {{"state", "running"}}), 4);
  EXPECT_EQ(SumOf(served, "gantry_call_duration_seconds_count", {{"process", "init"}}), 1);
  EXPECT_EQ(SumOf(served, "gantry_call_failures_total", {{"process", "exec"}}), 1);
  EXPECT_EQ(SumOf(served, "gantry_exits_total", {{"ending", "oom"}, {"process", "init"}}), 1);
  EXPECT_EQ(SumOf(served, "gantry_workers", {{"state", "lost"}}), 3);
  EXPECT_EQ(SumOf(served, "gantry_backend_figure", {{"handler", "kata"}}), 6);
  EXPECT_EQ(SumOf(served, "gantry_engine_starts_total"), 9);
  EXPECT_EQ(SumOf(served, "gantry_sandbox_cpu_seconds_total", {{"id", "p1"}}), 1.5);
  EXPECT_EQ(served.at("gantry_sandbox_memory_bytes").samples.size(), 1U) << "p2's is not known";
}

TEST(MetricsRender, ServesEachFamilyInBothFormats) {
  for (const TextFormat format : {TextFormat::kPrometheus, TextFormat::kOpenMetrics}) {
    const test::MetricsText served = Served(FullMoment(), format);
    EXPECT_EQ(served.size(), AllFamilies().size());
    for (const Family* const family : AllFamilies()) {
      std::string name(family->name);
      if (format == TextFormat::kOpenMetrics && family->kind == Kind::kCounter) {
        name.resize(name.size() - std::string("_total").size());
      }
      ASSERT_TRUE(served.contains(name)) << name;
      const test::FamilyText& text = served.at(name);
      EXPECT_EQ(text.type, KindName(family->kind)) << name;
      EXPECT_EQ(text.help, family->help) << name;
      ASSERT_FALSE(text.samples.empty()) << name;
      std::string labels;
      for (std::istringstream words{std::string(family->labels)}; words >> labels;) {
        EXPECT_TRUE(text.samples.front().labels.contains(labels.substr(0, labels.find(','))))
            << name << " " << labels;
      }
    }
  }
}

TEST(MetricsRender, LeavesOutWhatIsNotKnown) {
  Moment moment = FullMoment();
  moment.keeper.reset();
  moment.sandbox_rows.reset();
  const test::MetricsText served = Served(moment, TextFormat::kPrometheus);
  EXPECT_EQ(SumOf(served, "gantry_keeper_up"), 0);
  EXPECT_TRUE(served.contains("gantry_keeper_up"));
  EXPECT_FALSE(served.contains("gantry_engine_starts_total"));
  EXPECT_FALSE(served.contains("gantry_sandbox_calls"));
}

// Two samples of one name would have Prometheus take nothing of the text.
TEST(MetricsRender, HasOneOfABackendsNamesThatAreOne) {
  Moment moment = FullMoment();
  const std::string long_name(200, 'n');
  moment.backend_figures = {{"x", "", "a", 1},
                            {"x", "", "a", 2},
                            {"x", "", long_name + "1", 3},
                            {"x", "", long_name + "2", 4},
                            {"x", "", "\x01", 5},
                            {"x", "", "\x02", 6}};
  moment.backend_counters = {{"x", "", "a", 1}, {"x", "", "a", 2}};
  for (const TextFormat format : {TextFormat::kPrometheus, TextFormat::kOpenMetrics}) {
    const test::MetricsText served = Served(moment, format);
    EXPECT_EQ(served.at("gantry_backend_figure").samples.size(), 3U);
    EXPECT_EQ(SumOf(served, "gantry_backend_figure", {{"name", "a"}}), 1);
  }
}

TEST(MetricsRender, IsGoodWithNothingThere) {
  Served(Moment(), TextFormat::kPrometheus);
  Served(Moment(), TextFormat::kOpenMetrics);
}

/// Source: prometheus.io/docs/practices/naming.
TEST(MetricsFamilies, AreNamedByPrometheusRules) {
  for (const Family* const family : AllFamilies()) {
    const std::string name(family->name);
    EXPECT_TRUE(name.starts_with("gantry_")) << name;
    EXPECT_EQ(name.ends_with("_total"), family->kind == Kind::kCounter) << name;
    EXPECT_TRUE(family->kind != Kind::kHistogram || name.ends_with("_seconds")) << name;
    for (const char* const wrong : {"_ms", "_milliseconds", "_ns", "_us", "_kib", "_kilobytes",
                                    "_count", "_sum", "_bucket", "_percent"}) {
      EXPECT_FALSE(name.ends_with(wrong) || name.ends_with(std::string(wrong) + "_total")) << name;
    }
    EXPECT_TRUE(family->help.ends_with('.')) << name;
    EXPECT_EQ(family->help.find_first_of("\\\"\n"), std::string_view::npos) << name;
  }
}

TEST(MetricsFamilies, AreInTheDocumentation) {
  std::string expected;
  for (const Family* const family : AllFamilies()) {
    expected += Format("| `{}` | {} | {} | {} |\n", family->name, KindName(family->kind),
                       family->labels, family->help);
  }
  const auto text = ReadFile(std::string(GANTRY_SOURCE_DIR) + "/docs/metrics.md", 1 << 20);
  ASSERT_TRUE(text) << text.error().message;
  std::string found;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    found += line.starts_with("| `gantry_") ? line + "\n" : "";
  }
  EXPECT_EQ(found, expected) << "the table of docs/metrics.md is to be this one";
}

}  // namespace
}  // namespace gantry::metrics
