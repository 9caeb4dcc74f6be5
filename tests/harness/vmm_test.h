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

  /// kill -9; the keeper starts another.
  static void KillEngine();

  static Words Bound(const std::string& from, const std::string& to, const std::string& options);
};

/// Pods of both kinds.
class VmmPodTest : public CriPodTest {
 protected:
  void SetUp() override;
  void TearDown() override;

  static ContainerConfig Container(const std::string& name, const std::string& script);
  static void Mount(ContainerConfig& container, const std::string& from, const std::string& to,
                    bool read_only = false);
  static std::string LogOf(const PodConfig& config, const std::string& name);
  /// What a shell in it says.
  std::string Says(const std::string& id, const std::string& script);
};

}  // namespace gantry::e2e
