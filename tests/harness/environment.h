// SPDX-License-Identifier: Apache-2.0
//
// What all tests of the program share: the settings, the node, the count of
// descriptors that gantry holds when it has nothing to do.
#pragma once

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tests/harness/leftovers.h"
#include "tests/harness/node.h"

namespace gantry::e2e {

class Environment : public ::testing::Environment {
 public:
  explicit Environment(const Settings& settings);

  void SetUp() override;
  void TearDown() override;

  static Environment& Get();

  Node& node() { return node_; }

  /// Why tests cannot run here, and what failed although they could.
  const std::string& unavailable() const { return node_.settings().unavailable; }

  const std::string& failure() const { return failure_; }

  const Baseline& baseline() const { return baseline_; }

  /// What earlier tests have left and been told of.
  std::set<std::string>& known_leftovers() { return known_leftovers_; }

 private:
  void WarmUp();

  Node node_;
  std::string failure_;
  Baseline baseline_;
  std::set<std::string> known_leftovers_;
};

}  // namespace gantry::e2e
