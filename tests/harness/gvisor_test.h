// SPDX-License-Identifier: Apache-2.0
//
// The fixture of tests that are about the gvisor backend alone: pods of several containers by
// `ctr`, and what runs for them on the host.
#pragma once

#include <string>
#include <vector>

#include "tests/harness/e2e_test.h"

namespace gantry::e2e {

class GvisorTest : public E2eTest {
 protected:
  void SetUp() override;

  /// For `RunWords`: that the container is the root of the pod `pod`, or a further one.
  static Words AsRoot(const std::string& pod);
  static Words AsFurther(const std::string& pod);

  /// For `RunWords`: options of a file as containerd-shim-runsc-v1 reads it.
  Words WithOptions(const std::string& toml);

  /// In the foreground, read until it says "up". `script` is of a shell.
  static Program StartScript(const Words& flags, const std::string& id, const std::string& script);
  static Program StartExec(const std::string& id, const std::string& script);

  /// runsc's processes for this bundle: its gofer, and of a pod's root the sentry.
  static std::vector<HostProcess> RunscsOf(const std::string& id, const std::string& name);

  /// Of the release that these tests are for, and the other one.
  static std::string Runsc() { return settings().RunscOf(settings().runsc_release); }

  static std::string OtherRunsc();
};

}  // namespace gantry::e2e
