// SPDX-License-Identifier: Apache-2.0
//
// Whether lives leave anything behind in keeper and engine: what they have written to
// memory after many containers have come and gone.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "tests/performance/figures.h"
#include "tests/performance/life.h"
#include "tests/performance/rows.h"

namespace gantry::bench {
namespace {

constexpr int kLives = 5000;
constexpr int kAtOnce = 20;
/// The first samples, each after so many lives: what they differ by is noise.
constexpr int kSampleEvery = 100;
constexpr int kFirst = 500;

int Lives() {
  const char* lives = std::getenv("GANTRY_BENCH_LIVES");  // NOLINT(concurrency-mt-unsafe)
  return std::max(kFirst + kAtOnce, lives == nullptr ? kLives : std::atoi(lives));
}

}  // namespace

Status ChurnRow(Lab& lab, const Extent& /*extent*/, Report& report) {
  const Side side = lab.Gantry("crun");
  const int lives = Lives();
  std::vector<double> first;
  for (int done = 0; done < lives;) {
    const int now = std::min(kAtOnce, lives - done);
    GANTRY_CHECK_OK(ManyLives(lab, side, {"true"}, now, now));
    done += now;
    if (done <= kFirst && done % kSampleEvery == 0) {
      first.push_back(SettledPssKib(lab, side, Pages::kWritten));
    }
  }
  // The very first sample still has what is allocated once.
  const auto [least, most] = std::ranges::minmax(std::vector(first.begin() + 1, first.end()));
  report.Add(Row{
      .id = "churn-growth",
      .what = "memory of keeper and engine gained from life 500 to life " + std::to_string(lives) +
              ", 20 at a time; spread of it in lives 200 to 500 (as peer)",
      .unit = "KiB",
      .ours = SettledPssKib(lab, side, Pages::kWritten) - first.back(),
      .peer = most - least,
      .target = "",
      .met = {}}.RatioAtMost(1));
  return {};
}

}  // namespace gantry::bench
