// SPDX-License-Identifier: Apache-2.0
//
// Pods of the system's containerd, as a kubelet with systemd's cgroup driver makes
// them: each in a slice of its own.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/integration/cri/client.h"
#include "tests/node/harness/node_test.h"

namespace gantry::node {

/// Each test for pods with a pause container and for those that the shim makes; the
/// parameter is the sandboxer, or "runc-type": containerd's own runtime type with gantry's
/// shim.
class PodTest : public NodeTest, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override;
  /// Removes the test's pods.
  void TearDown() override;

  e2e::CriClient& cri() { return *client_; }

  void Connect();

  /// Of containerd's configuration.
  static std::string Handler() {
    return GetParam() == "podsandbox" ? std::string(Oci()) : std::string(Oci()) + "-" + GetParam();
  }

  e2e::PodConfig Pod(const std::string& name);
  /// Fails the test where it does not run. Both are removed at the test's end.
  std::string RunPod(const e2e::PodConfig& config);
  std::string RunContainer(const std::string& pod, const e2e::PodConfig& config,
                           const Words& command);

  /// "gantry-pod1.slice", and its folder.
  static std::string Slice(const std::string& name) { return "gantry-" + name + ".slice"; }

  static std::string SliceFolder(const std::string& name) {
    return "/sys/fs/cgroup/gantry.slice/" + Slice(name);
  }

  /// Of a test that leaves them for the next boot.
  void KeepPods() { pods_.clear(); }

 private:
  std::unique_ptr<e2e::CriClient> client_;
  std::vector<std::pair<std::string, std::string>> pods_;  ///< Id and name.
};

/// `suite`, a PodTest, with both sandboxers.
#define INSTANTIATE_PODS(suite)                                                       \
  INSTANTIATE_TEST_SUITE_P(Sandboxer, suite, ::testing::Values("podsandbox", "shim"), \
                           [](const auto& parameter) { return parameter.param; })

}  // namespace gantry::node
