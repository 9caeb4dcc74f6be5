// SPDX-License-Identifier: Apache-2.0
#include "core/cgroup/weight_formula.h"

#include <string>
#include <string_view>
#include <vector>

#include <gantry/number.h>
#include <gantry/toolkit/files/files.h>

#include "core/cgroup/cgroup_v2.h"
#include "core/cgroup/scope_update.h"

namespace gantry::os {
namespace {

constexpr size_t kMaxWeightBytes = 64;

bool IsMadeBy(CpuWeightFormula formula, uint64_t weight, uint64_t shares) {
  const uint64_t made = v2::WeightFromShares(shares, formula);
  return weight <= made + 1 && made <= weight + 1;
}

std::optional<uint64_t> WeightOf(const std::string& dir) {
  const auto text = ReadFile(dir + "/cpu.weight", kMaxWeightBytes);
  const auto weight = text ? ParseNumber(std::string_view(*text).substr(0, text->find('\n')))
                           : Result<int64_t>(std::unexpected(text.error()));
  return weight && *weight > 0 ? std::optional(static_cast<uint64_t>(*weight)) : std::nullopt;
}

}  // namespace

std::optional<CpuWeightFormula> FormulaThatMakes(uint64_t weight, uint64_t shares) {
  const bool quadratic = IsMadeBy(CpuWeightFormula::kQuadratic, weight, shares);
  const bool linear = IsMadeBy(CpuWeightFormula::kLinear, weight, shares);
  if (quadratic == linear) {
    return std::nullopt;
  }
  return quadratic ? CpuWeightFormula::kQuadratic : CpuWeightFormula::kLinear;
}

std::optional<CpuWeightFormula> FindWeightFormula(const CgroupHierarchy& node, const Cgroup& cgroup,
                                                  std::initializer_list<uint64_t> shares) {
  if (!cgroup.is_unified() || cgroup.empty()) {
    return std::nullopt;
  }
  // What is set for sure is the scope's; crun's cgroup in it may have been left as it was made.
  std::vector<uint64_t> weights;
  std::vector<std::string> dirs = {cgroup.unified().dir()};
  if (const std::string_view path = ScopeOf(cgroup.unified().path); !path.empty()) {
    if (const auto scope = Cgroup::Named(node, std::string(path))) {
      dirs.insert(dirs.begin(), scope->unified().dir());
    }
  }
  for (const std::string& dir : dirs) {
    if (const auto weight = WeightOf(dir)) {
      weights.push_back(*weight);
    }
  }
  for (const uint64_t given : shares) {
    for (const uint64_t weight : weights) {
      if (const auto found = given == 0 ? std::nullopt : FormulaThatMakes(weight, given)) {
        return found;
      }
    }
  }
  return std::nullopt;
}

}  // namespace gantry::os
