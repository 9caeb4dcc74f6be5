// SPDX-License-Identifier: Apache-2.0
//
// Whether lives leave anything behind in keeper and engine: what they have written to
// memory after many containers have come and gone.
#include <algorithm>
#include <cstdlib>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "tests/performance/figures.h"
#include "tests/performance/instance.h"
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

Status OneLife(Instance& instance) {
  GANTRY_CHECK_OK(instance.Run({"true"}));
  GANTRY_CHECK_OK(instance.Wait(0));
  GANTRY_CHECK_OK(instance.Delete());
  GANTRY_CHECK_OK(instance.Shutdown());
  GANTRY_CHECK_OK(instance.DeleteShim());
  return {};
}

Status LivesAtOnce(Lab& lab, int count) {
  std::vector<std::unique_ptr<Instance>> instances;
  std::vector<std::future<Status>> lives;
  for (int i = 0; i < count; ++i) {
    // Names are given out by one thread.
    instances.push_back(std::make_unique<Instance>(lab, lab.Gantry("crun")));
    lives.push_back(std::async(std::launch::async,
                               [&instance = *instances.back()] { return OneLife(instance); }));
  }
  Status all;
  for (auto& life : lives) {
    if (Status one = life.get(); !one && all) {
      all = std::move(one);
    }
  }
  return all;
}

}  // namespace

Status ChurnRow(Lab& lab, const Extent& /*extent*/, Report& report) {
  const Side side = lab.Gantry("crun");
  const int lives = Lives();
  std::vector<double> first;
  for (int done = 0; done < lives;) {
    const int now = std::min(kAtOnce, lives - done);
    GANTRY_CHECK_OK(LivesAtOnce(lab, now));
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
