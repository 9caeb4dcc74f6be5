// SPDX-License-Identifier: Apache-2.0
//
// The fixture of tests that are about the vmm backend alone, and what such a test asks of the node:
// which processes run for the machines, and whether they are gone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/harness/cri_pod.h"
#include "tests/harness/e2e_test.h"
#include "tests/harness/vmm_node.h"

namespace gantry::e2e {

inline constexpr const char* kQemu = "qemu-system-x86_64";
inline constexpr const char* kVsock = "gantry-vsock";
inline constexpr const char* kVirtiofsd = "virtiofsd";

/// The keeper's children whose program's name has `program` in it.
std::vector<HostProcess> HelpersCalled(const Node& node, std::string_view program);

/// Waits until nothing runs for a machine.
void ExpectNoMachine(const Node& node);

/// kill -9; the keeper starts another.
void KillEngineOf(const Node& node);

/// What `/proc/sys/kernel/random/boot_id` is in here: a kernel's own.
inline constexpr const char* kBootId = "/proc/sys/kernel/random/boot_id";

class VmmTest : public E2eTest {
 protected:
  void SetUp() override;
  void TearDown() override;

  /// `ctr run --rm` of a shell.
  Output RunScript(const std::string& script, const Words& flags = {});
  /// In the foreground, read until it says "up".
  static Program StartScript(const std::string& id, const std::string& script,
                             const Words& flags = {});
  static Program StartExec(const std::string& id, const std::string& script);

  static std::vector<HostProcess> Helpers(std::string_view program) {
    return HelpersCalled(node(), program);
  }

  /// Of the one machine that there is.
  static void KillHelper(std::string_view program);

  static void KillEngine() { KillEngineOf(node()); }

  static Words Bound(const std::string& from, const std::string& to, const std::string& options);
};

/// A pod of both kinds, `web-0`, which has a network of its own.
class VmmPodTest : public CriPodTest {
 protected:
  void SetUp() override;
  void TearDown() override;

  const PodConfig& config() const { return config_; }

  const std::string& pod() const { return pod_; }

  /// A shell in the pod; its id.
  std::string Run(const std::string& name, const std::string& script = "exec sleep 100000");
  static ContainerConfig Container(const std::string& name, const std::string& script);
  static void Mount(ContainerConfig& container, const std::string& from, const std::string& to,
                    bool read_only = false);
  std::string LogOf(const std::string& name) const;
  /// What a shell in it says.
  std::string Says(const std::string& id, const std::string& script);

 private:
  PodConfig config_;
  std::string pod_;
};

}  // namespace gantry::e2e
