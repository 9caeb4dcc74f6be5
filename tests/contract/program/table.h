// SPDX-License-Identifier: Apache-2.0
//
// What gantry-backend-test prints: a line for each rule, as it is known, and why
// those are not met that are not.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace gantry::contract {

/// Thread: the test's.
class RuleTable final : public testing::EmptyTestEventListener {
 public:
  void OnTestProgramStart(const testing::UnitTest& all) override;
  void OnEnvironmentsSetUpEnd(const testing::UnitTest& all) override;
  void OnTestPartResult(const testing::TestPartResult& result) override;
  void OnTestEnd(const testing::TestInfo& test) override;
  void OnTestProgramEnd(const testing::UnitTest& all) override;

  /// `status`: GoogleTest's. 0: all rules are met or not supported; 1: one is not
  /// met; 2: none was.
  int Verdict(int status) const;

 private:
  struct NotMet {
    std::string rule;
    std::vector<std::string> why;
  };

  size_t width_ = 0;
  std::vector<std::string> failures_;
  /// Why no rule is tried: the first container did not live.
  std::vector<std::string> stopped_;
  std::string skipped_;
  std::vector<NotMet> not_met_;
  int met_ = 0;
  int not_supported_ = 0;
};

/// SUITE.TEST of Backends/SUITE.TEST/BACKEND.
std::string RuleOf(const testing::TestInfo& test);

}  // namespace gantry::contract
