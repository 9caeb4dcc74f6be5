// SPDX-License-Identifier: Apache-2.0
//
// The fixture of tests of sandboxes that the gvisor backend boots before there is a pod: pods
// without a pause container, on a node whose handler has some.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/harness/cri_test.h"

namespace gantry::e2e {

class GvisorWarmTest : public CriTest {
 protected:
  void SetUp() override;
  /// The node is as it was before the test.
  void TearDown() override;

  std::string handler() const override { return "gantry-shim"; }

  /// With a name, and with that a network, of its own.
  PodConfig NamedPod(const std::string& suffix = "");

  /// An engine whose handler has so many. Fails the test where they are not ready. `flags`: of
  /// runsc, beside the platform: lines of YAML.
  void Restart(uint32_t warm, const std::string& flags = "");
  void AwaitReady(uint32_t warm);

  /// Of `gantryctl status`; none: it says nothing of the kind.
  std::optional<uint64_t> Count(const std::string& name);
  Output Gantryctl(const Words& words);

  /// The sentries that no pod has.
  std::vector<pid_t> Waiting();
  /// Those of this run's pods.
  std::vector<pid_t> OfPods();
  /// Of the only pod. Fails the test where there is not one.
  pid_t OfPod();

  /// Where they wait.
  std::string folder() const { return settings().root + "/runsc"; }
};

}  // namespace gantry::e2e
