// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <gantry/toolkit/cgroup/resources.h>

namespace gantry::cgroup {
namespace {

bool IsMadeBy(CpuWeightFormula formula, uint64_t weight, uint64_t shares) {
  const uint64_t made = WeightFromShares(shares, formula);
  return weight <= made + 1 && made <= weight + 1;
}

}  // namespace

uint64_t WeightFromShares(uint64_t shares, CpuWeightFormula formula) {
  const uint64_t within = std::clamp<uint64_t>(shares, 2, 262144);
  if (formula == CpuWeightFormula::kLinear) {
    return 1 + ((within - 2) * 9999) / 262142;
  }
  if (within == 2 || within == 262144) {
    // As the range ends, however a power is rounded.
    return within == 2 ? 1 : 10000;
  }
  const double log = std::log2(static_cast<double>(within));
  return static_cast<uint64_t>(std::ceil(std::pow(10, (log * log + 125 * log) / 612 - 7.0 / 34)));
}

uint64_t WeightFromBlkio(uint16_t weight) {
  return 1 + (uint64_t{std::clamp<uint16_t>(weight, 10, 1000)} - 10) * 9999 / 990;
}

std::optional<CpuWeightFormula> FormulaThatMakes(uint64_t weight, uint64_t shares) {
  const bool quadratic = IsMadeBy(CpuWeightFormula::kQuadratic, weight, shares);
  const bool linear = IsMadeBy(CpuWeightFormula::kLinear, weight, shares);
  if (quadratic == linear) {
    return std::nullopt;
  }
  return quadratic ? CpuWeightFormula::kQuadratic : CpuWeightFormula::kLinear;
}

}  // namespace gantry::cgroup
