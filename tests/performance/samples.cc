// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/samples.h"

#include <algorithm>
#include <cmath>

namespace gantry::bench {

double Percentile(std::vector<double> samples, double share) {
  if (samples.empty()) {
    return 0;
  }
  std::ranges::sort(samples);
  const double place = share * static_cast<double>(samples.size() - 1);
  const auto below = static_cast<size_t>(std::floor(place));
  const size_t above = std::min(below + 1, samples.size() - 1);
  const double rest = place - std::floor(place);
  return samples[below] * (1 - rest) + samples[above] * rest;
}

void Phases::Add(const std::string& name, double value) {
  if (!values_.contains(name)) {
    names_.push_back(name);
  }
  values_[name].push_back(value);
  total_ += value;
}

void Phases::Append(const Phases& run) {
  for (const std::string& name : run.names_) {
    if (!values_.contains(name)) {
      names_.push_back(name);
    }
    const auto& more = run.values_.at(name);
    values_[name].insert(values_[name].end(), more.begin(), more.end());
  }
  totals_.push_back(run.total_);
}

double Phases::MedianTotal() const { return Median(totals_); }

double Phases::MedianOf(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? 0 : Median(found->second);
}

double Phases::MedianOf(const std::vector<std::string>& names) const {
  std::vector<double> sums(totals_.size());
  for (const std::string& name : names) {
    const auto found = values_.find(name);
    for (size_t run = 0; found != values_.end() && run < sums.size(); ++run) {
      sums[run] += found->second.at(run);
    }
  }
  return Median(sums);
}

Result<Pair> Alternate(int warm, int rounds, const Measure& ours, const Measure& peer) {
  Pair pair;
  for (int round = -warm; round < rounds; ++round) {
    const bool ours_first = round % 2 == 0;
    GANTRY_TRY(const Phases first, ours_first ? ours() : peer());
    GANTRY_TRY(const Phases second, ours_first ? peer() : ours());
    if (round >= 0) {
      pair.ours.Append(ours_first ? first : second);
      pair.peer.Append(ours_first ? second : first);
    }
  }
  return pair;
}

}  // namespace gantry::bench
