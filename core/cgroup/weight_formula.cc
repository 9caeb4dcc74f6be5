// SPDX-License-Identifier: Apache-2.0
#include "core/cgroup/weight_formula.h"

#include <string>
#include <string_view>
#include <vector>

#include <gantry/toolkit/cgroup/counters.h>

#include "core/cgroup/scope_update.h"

namespace gantry::cgroup {

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
    const auto weight = ReadNumber(dir + "/cpu.weight");
    if (weight && *weight > 0) {
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

}  // namespace gantry::cgroup
