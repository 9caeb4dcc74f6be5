// SPDX-License-Identifier: Apache-2.0
//
// What the flight recorder costs: lives of containers, with it and without.
#include <filesystem>
#include <system_error>
#include <vector>

#include "core/trace/step.h"
#include "tests/performance/figures.h"
#include "tests/performance/life.h"
#include "tests/performance/rows.h"

namespace gantry::bench {
namespace {

/// Of each side, in turns: the machine's mood meets both.
constexpr int kTurns = 5;
constexpr double kRatioLimit = 1.05;

/// A directory in the ring's place, which no engine can open, is what turns it off.
class Switched {
 public:
  Switched(Lab& lab, bool on) : lab_(lab), ring_(lab.run_dir() + "/" + trace::kFileName) {
    Restart();
    if (!on) {
      std::filesystem::create_directory(ring_);
    }
  }

  Switched(const Switched&) = delete;
  Switched& operator=(const Switched&) = delete;

  ~Switched() { Restart(); }

 private:
  void Restart() const {
    lab_.EndGantry(lab_.Gantry("crun"));
    std::error_code error;
    std::filesystem::remove(ring_, error);
  }

  Lab& lab_;
  const std::string ring_;
};

/// Of keeper and engine, for one life. Units: us.
Result<double> CpuOfALife(Lab& lab, bool recorded, const Extent& extent) {
  const Switched switched(lab, recorded);
  const Side side = lab.Gantry("crun");
  for (int i = 0; i < extent.warm(); ++i) {
    GANTRY_TRY([[maybe_unused]] const Phases warm, OneLife(lab, side, {"true"}));
  }
  const std::vector<pid_t> pids = Processes(lab, side);
  const double before = CpuMilliseconds(pids);
  for (int i = 0; i < extent.rounds; ++i) {
    GANTRY_TRY([[maybe_unused]] const Phases life, OneLife(lab, side, {"true"}));
  }
  return (CpuMilliseconds(pids) - before) * 1000 / extent.rounds;
}

}  // namespace

Status TraceRow(Lab& lab, const Extent& extent, Report& report) {
  std::vector<double> with;
  std::vector<double> without;
  for (int i = 0; i < kTurns; ++i) {
    GANTRY_TRY(const double plain, CpuOfALife(lab, false, extent));
    GANTRY_TRY(const double recorded, CpuOfALife(lab, true, extent));
    without.push_back(plain);
    with.push_back(recorded);
  }
  report.Add(Row{
      .id = "trace-cost",
      .what = "processor time of keeper and engine for a life of 'true', crun; without the flight "
              "recorder (as peer)",
      .unit = "us",
      .ours = Median(with),
      .peer = Median(without),
      .target = "",
      .met = {}}.RatioAtMost(kRatioLimit));
  return {};
}

}  // namespace gantry::bench
