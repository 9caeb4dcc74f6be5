// SPDX-License-Identifier: Apache-2.0
//
// What the rows do with what they measured: medians of both sides, taken in
// turns, so that a change of the machine's mood meets both.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gantry/error.h>

namespace gantry::bench {

using Clock = std::chrono::steady_clock;

inline double MillisecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

/// The value below which `share` (0 to 1) of the samples are; 0 for none.
double Percentile(std::vector<double> samples, double share);

inline double Median(const std::vector<double>& samples) { return Percentile(samples, 0.5); }

/// Named times of one run, in the order in which they were taken.
class Phases {
 public:
  void Add(const std::string& name, double value);
  void Append(const Phases& run);
  /// Sum of the medians is not the median of the sums: this is of the sums.
  double MedianTotal() const;

  const std::vector<std::string>& names() const { return names_; }

  double MedianOf(const std::string& name) const;
  /// Of what these parts of a run are together; every run must have each of them once.
  double MedianOf(const std::vector<std::string>& names) const;

 private:
  std::vector<std::string> names_;
  std::map<std::string, std::vector<double>> values_;
  std::vector<double> totals_;
  double total_ = 0;
};

/// Does one step of a run, and adds its time.
template <class Step>
Status Timed(Phases& phases, const std::string& name, Step&& step) {
  const auto begin = Clock::now();
  GANTRY_CHECK_OK(step());
  phases.Add(name, MillisecondsSince(begin));
  return {};
}

struct Pair {
  Phases ours;
  Phases peer;
};

/// One run of one side: its phases.
using Measure = std::function<Result<Phases>()>;

/// Runs both sides in turns, `rounds` times after `warm` rounds that do not
/// count; who goes first changes with every round.
Result<Pair> Alternate(int warm, int rounds, const Measure& ours, const Measure& peer);

}  // namespace gantry::bench
