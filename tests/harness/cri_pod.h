// SPDX-License-Identifier: Apache-2.0
//
// The fixture of tests of pods that hold for all kinds: those with a pause container
// ("podsandbox"), those that the shim makes ("shim"), and those that gantry's sandbox controller
// makes ("controller"); the latter two also with streams over the sandbox's socket in place of
// fifos ("shim-streaming", "controller-streaming").
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include <gantry/toolkit/files/files.h>

#include "tests/harness/cri_test.h"

namespace gantry::e2e {

class CriPodTest : public CriTest, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    if (!is_podsandbox() && settings().stock()) {
      GTEST_SKIP() << "the stock shim makes no pods";
    }
    if (!is_podsandbox() && !is_controller() && !settings().sandbox_api()) {
      GTEST_SKIP() << settings().no_sandbox_api();
    }
    if (is_controller() && !settings().controllers()) {
      GTEST_SKIP() << "containerd 1.7 asks no sandbox controller";
    }
    if (is_streaming() && settings().release1()) {
      GTEST_SKIP() << "containerd 1.7 knows of fifos alone";
    }
    CriTest::SetUp();
    if (!IsSkipped() && !HasFatalFailure()) {
      AwaitController();
    }
  }

  bool is_podsandbox() const { return std::string_view(GetParam()) == "podsandbox"; }

  bool is_controller() const { return std::string_view(GetParam()).starts_with("controller"); }

  bool is_streaming() const { return std::string_view(GetParam()).ends_with("-streaming"); }

  std::string handler() const override {
    return is_podsandbox() ? "gantry" : "gantry-" + std::string(GetParam());
  }

  /// No shim starts gantry for a controller's pod: on a node it is a service. Here a container
  /// does.
  void AwaitController() {
    if (!is_controller()) {
      return;
    }
    if (node().Engine().pid == 0) {
      const Output output = RunContainer({"--rm"}, "first-of-all", {"true"});
      ASSERT_EQ(output.status, 0) << output.Text();
    }
    ASSERT_TRUE(Eventually([this] { return Exists(settings().grpc_address()); }));
  }
};

/// For INSTANTIATE_TEST_SUITE_P.
inline const auto kSandboxers = testing::Values("podsandbox", "shim", "controller");

inline const auto kStreamingSandboxers = testing::Values("shim-streaming", "controller-streaming");

inline std::string SandboxerName(const testing::TestParamInfo<const char*>& row) {
  std::string name = row.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

}  // namespace gantry::e2e
