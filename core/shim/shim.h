// SPDX-License-Identifier: Apache-2.0
//
// The shim's two actions. Both give what is to be printed on stdout.
#pragma once

#include <string>

#include <gantry/error.h>

#include "core/shim/arguments.h"

namespace gantry::shim {

/// What the actions read of their surroundings.
struct Surroundings {
  /// The working directory; containerd makes it the bundle.
  std::string bundle;
  std::string run_dir;
  /// $MAX_SHIM_VERSION is set.
  bool has_max_version = false;
  /// Of who has started this; 0: it cannot be told.
  int containerd_major = 0;
  std::string ttrpc_address;
  /// All that came on stdin (`start` only).
  std::string input;
};

/// Announces the instance to the keeper, which it starts if need be, and writes the
/// bundle's file `address`. Blocks: up to 10 s.
Result<std::string> Start(const Arguments& arguments, const Surroundings& around);

/// Ends the instance. Where no keeper knows it, this process kills what the bundle's
/// record names. Blocks: up to 4.8 s; containerd waits for 5.
Result<std::string> Delete(const Arguments& arguments, const Surroundings& around);

}  // namespace gantry::shim
