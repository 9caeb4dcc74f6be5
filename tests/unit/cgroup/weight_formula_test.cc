// SPDX-License-Identifier: Apache-2.0
#include "core/cgroup/weight_formula.h"

#include <gtest/gtest.h>

#include "tests/unit/cgroup/fake_cgroupfs.h"

namespace gantry::cgroup {
namespace {

using os::FakeCgroupFs;

constexpr auto kQuadratic = CpuWeightFormula::kQuadratic;
constexpr auto kLinear = CpuWeightFormula::kLinear;

class FindWeightFormulaTest : public testing::Test {
 protected:
  FindWeightFormulaTest() { fs_.Put("cgroup.controllers", "cpu\n"); }

  std::optional<CpuWeightFormula> Find(const std::string& path,
                                       std::initializer_list<uint64_t> shares) {
    const auto node = CgroupHierarchy::At(fs_.path());
    const auto cgroup = Cgroup::Named(*node, path);
    return FindWeightFormula(*node, *cgroup, shares);
  }

  FakeCgroupFs fs_;
};

TEST_F(FindWeightFormulaTest, GoesByTheFirstSharesThatTellIt) {
  fs_.Put("c/cpu.weight", "79\n");
  EXPECT_EQ(Find("/c", {0, 1024, 2048}), kLinear);
  // 100 of these would be linear, 100 of those is quadratic.
  fs_.Put("c/cpu.weight", "100\n");
  EXPECT_EQ(Find("/c", {1024, 2598}), kQuadratic);
  EXPECT_EQ(Find("/c", {2598, 1024}), kLinear);
  EXPECT_EQ(Find("/c", {0, 3}), std::nullopt);
}

TEST_F(FindWeightFormulaTest, GoesByTheScopeFirst) {
  fs_.Put("s.slice/x.scope/cpu.weight", "39\n");
  fs_.Put("s.slice/x.scope/container/cpu.weight", "100\n");
  EXPECT_EQ(Find("/s.slice/x.scope/container", {1024}), kLinear);
}

TEST_F(FindWeightFormulaTest, IsNothingWithoutAWeight) {
  fs_.Put("c/cgroup.procs", "");
  EXPECT_EQ(Find("/c", {1024}), std::nullopt);
  fs_.Put("c/cpu.weight", "much\n");
  EXPECT_EQ(Find("/c", {1024}), std::nullopt);
}

}  // namespace
}  // namespace gantry::cgroup
