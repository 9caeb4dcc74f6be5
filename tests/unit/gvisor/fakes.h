// SPDX-License-Identifier: Apache-2.0
//
// Programs that stand for runsc, and what the core lends to a sandbox.
#pragma once

#include <optional>
#include <string>

#include <gantry/testing/sandbox_context.h>

#include "core/os/fs.h"
#include "tests/unit/toolkit/names_in.h"

namespace gantry::gvisor {

/// runsc as a shell script: it lists what flags the launcher needs, and does `boot` and
/// `gofer` as the test says, in shell; `fd FLAG` gives the number of `--FLAG=NUMBER`.
struct FakeRunsc {
  std::string boot = "exit 0";
  std::string gofer = "exit 0";
  bool lists_flags = true;
  std::string version = "fake";
  /// A flag of `boot` that it does not list.
  std::string lacks{};

  /// Gives its path.
  std::string WriteTo(const std::string& directory) const;
  /// As the sentry on its own beside the runsc in that directory.
  void WriteAsSidecar(const std::string& directory) const;
};

/// runsc of a release for the tests, if it is there: `20260905`.
std::optional<std::string> RealRunsc(const std::string& release);

}  // namespace gantry::gvisor
