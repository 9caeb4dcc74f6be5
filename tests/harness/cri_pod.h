// SPDX-License-Identifier: Apache-2.0
//
// The fixture of tests of pods that hold for both kinds: those with a pause
// container ("podsandbox"), and those that the shim makes ("shim").
#pragma once

#include <string>
#include <string_view>

#include "tests/harness/cri_test.h"

namespace gantry::e2e {

class CriPodTest : public CriTest, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    if (!is_podsandbox() && settings().stock()) {
      GTEST_SKIP() << "the stock shim makes no pods";
    }
    if (!is_podsandbox() && !settings().sandbox_api()) {
      GTEST_SKIP() << settings().no_sandbox_api();
    }
    CriTest::SetUp();
  }

  bool is_podsandbox() const { return std::string_view(GetParam()) == "podsandbox"; }

  std::string handler() const override { return is_podsandbox() ? "gantry" : "gantry-shim"; }
};

/// For INSTANTIATE_TEST_SUITE_P.
inline const auto kSandboxers = testing::Values("podsandbox", "shim");

inline std::string SandboxerName(const testing::TestParamInfo<const char*>& row) {
  return row.param;
}

}  // namespace gantry::e2e
