// SPDX-License-Identifier: Apache-2.0
//
// The fixture of tests that act as a kubelet does.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/harness/cri_stream.h"
#include "tests/harness/e2e_test.h"
#include "tests/integration/cri/client.h"

namespace gantry::e2e {

class CriTest : public E2eTest {
 protected:
  void SetUp() override;
  /// Removes every pod and asks that nothing is left of them.
  void TearDown() override;

  CriClient& cri() { return *client_; }

  /// Connects again, after a restart of containerd.
  void Connect();

  /// CRI's name of the runtime that `Pod` is for.
  virtual std::string handler() const { return "gantry"; }

  PodConfig Pod(const std::string& suffix = "");
  /// Fails the test when it does not run.
  std::string RunPod(const PodConfig& config);
  /// Created and started.
  std::string RunContainerIn(const std::string& pod, const PodConfig& config,
                             const std::string& name, const Words& command,
                             int64_t memory_limit_bytes = 0);
  std::string RunContainerIn(const std::string& pod, const PodConfig& config,
                             const ContainerConfig& container);
  ExecResult Exec(const std::string& id, const Words& command);
  /// Fails the test when they do not open; then there is none.
  std::optional<CriStream> OpenExec(const std::string& id, const Words& command,
                                    bool terminal = false);
  std::optional<CriStream> OpenAttach(const std::string& id, bool terminal = false);
  cri::ContainerStatus StatusOf(const std::string& id);
  /// Waits for containerd's word that it has ended.
  cri::ContainerStatus WaitForEnd(const std::string& id);
  pid_t PidOf(const std::string& id);

  /// As the kubelet does it, again and again until there are none: containerd 1.7
  /// may write to a container's folder while it removes that.
  void RemovePods();
  void RemoveContainers();
  void ExpectNoBundles();
  /// The cgroups of the pods so far, which are the kubelet's.
  void RemoveParents();

 private:
  std::unique_ptr<CriClient> client_;
  std::vector<std::string> parents_;
};

}  // namespace gantry::e2e
