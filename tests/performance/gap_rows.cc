// SPDX-License-Identifier: Apache-2.0
//
// How long a client waits when the engine dies, when it is replaced, and when
// the keeper becomes another program, with so many idle containers there; and
// what each container adds to an engine's way back.
#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/performance/disturbance.h"
#include "tests/performance/instance.h"
#include "tests/performance/prober.h"
#include "tests/performance/rows.h"

namespace gantry::bench {
namespace {

constexpr std::chrono::milliseconds kBefore{100};
/// Longer than an engine must last for the next one to be started at once.
constexpr std::chrono::milliseconds kAfter{1500};
constexpr size_t kStride = 37;
constexpr double kSlopeLimit = 0.3;

struct Kind {
  Disturbance what;
  const char* name;
  const char* words;
  double limit_at_100;
};

constexpr std::array kKinds = {
    Kind{Disturbance::kCrash, "crash", "kill -9 of the engine", 150},
    Kind{Disturbance::kUpgrade, "upgrade", "an upgrade of the engine", 50},
    Kind{Disturbance::kKeeper, "keeper", "an upgrade of the keeper", 10}};

using Instances = std::vector<std::unique_ptr<Instance>>;

Status GrowTo(Lab& lab, Instances& instances, size_t count) {
  while (instances.size() < count) {
    instances.push_back(std::make_unique<Instance>(lab, lab.Gantry("crun")));
    GANTRY_CHECK_OK(instances.back()->Run({"sleep", "100000"}));
  }
  // The client shall not measure what making them has left to do.
  std::this_thread::sleep_for(kAfter);
  return {};
}

/// The longest gap of each round. Every round asks another container: they are
/// taken up one after the other, and it shall not always be the first.
Result<std::vector<double>> Gaps(const Lab& lab, const Instances& instances, Disturbance what,
                                 int rounds) {
  std::vector<double> gaps;
  for (int round = 0; round < rounds; ++round) {
    const Instance& asked = *instances[static_cast<size_t>(round) * kStride % instances.size()];
    Prober prober;
    GANTRY_CHECK_OK(prober.Start(asked.socket(), asked.id(), lab.ns()));
    std::this_thread::sleep_for(kBefore);
    GANTRY_CHECK_OK(Disturb(lab, what));
    std::this_thread::sleep_for(kAfter);
    GANTRY_TRY(const double gap, prober.Stop());
    gaps.push_back(gap);
  }
  return gaps;
}

/// Least squares. Units: ms for each container.
double Slope(const std::map<size_t, double>& points) {
  double x = 0;
  double y = 0;
  for (const auto& [count, time] : points) {
    x += static_cast<double>(count) / static_cast<double>(points.size());
    y += time / static_cast<double>(points.size());
  }
  double both = 0;
  double square = 0;
  for (const auto& [count, time] : points) {
    const double away = static_cast<double>(count) - x;
    both += away * (time - y);
    square += away * away;
  }
  return square == 0 ? 0 : both / square;
}

Status RowsAt(const Lab& lab, const Instances& instances, int rounds, Report& report,
              std::map<size_t, double>& crashes) {
  const size_t count = instances.size();
  GANTRY_TRY(const auto quiet, Gaps(lab, instances, Disturbance::kNone, rounds));
  for (const Kind& kind : kKinds) {
    GANTRY_TRY(const auto gaps, Gaps(lab, instances, kind.what, rounds));
    if (kind.what == Disturbance::kCrash) {
      crashes[count] = Median(gaps);
    }
    const std::string id = std::string("gap-") + kind.name + "-" + std::to_string(count);
    Row row{.id = id,
            .what = std::string("longest wait for a State, the worst of ") +
                    std::to_string(rounds) + " times " + kind.words + ", " + std::to_string(count) +
                    (count == 1 ? " container" : " containers") + "; undisturbed (as peer)",
            .unit = "ms",
            .ours = std::ranges::max(gaps),
            .peer = std::ranges::max(quiet),
            .target = "",
            .met = {}};
    report.Add(count == 100 ? std::move(row).AtMost(kind.limit_at_100) : std::move(row));
    report.AddPart(id, "median of the rounds", Median(gaps), Median(quiet));
  }
  return {};
}

}  // namespace

Status GapRows(Lab& lab, const Extent& extent, Report& report) {
  const int rounds = std::clamp(extent.rounds / 3, 1, 10);
  std::map<size_t, double> crashes;
  Instances instances;
  for (const size_t count : {1, 100, 500}) {
    GANTRY_CHECK_OK(GrowTo(lab, instances, count));
    GANTRY_CHECK_OK(RowsAt(lab, instances, rounds, report, crashes));
  }
  for (const auto& instance : instances) {
    GANTRY_CHECK_OK(instance->End());
  }
  report.Add(Row{
      .id = "recovery-slope",
      .what = "what each container adds to the median wait after kill -9, from 1, 100 and 500",
      .unit = "ms",
      .ours = Slope(crashes),
      .peer = std::nullopt,
      .target = "",
      .met = {}}.AtMost(kSlopeLimit));
  return {};
}

}  // namespace gantry::bench
