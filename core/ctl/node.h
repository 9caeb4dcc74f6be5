// SPDX-License-Identifier: Apache-2.0
//
// The machine that `gantryctl` looks at.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <gantry/backend.h>
#include <gantry/error.h>

#include "core/config/config.h"

namespace gantry::ctl {

/// Where to look. Tests give folders of their own.
struct Node {
  /// In front of every absolute path below.
  std::string root;
  std::vector<std::string> path = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
                                   "/usr/bin",        "/sbin",          "/bin"};
  std::string run_dir;
  /// The folder with gantryd, gantry-keeper and plugins/.
  std::string libexec_dir;
  /// Backends of this tree that were not built.
  std::vector<std::string> left_out;
  /// What a tool writes when it is run.
  std::function<Result<std::string>(const std::vector<std::string>&)> first_line;

  /// A backend of the configuration, loaded. Errors: why it cannot be used.
  std::function<Result<SandboxBackend*>(const std::string&)> find_backend;

  /// This machine, with PATH of the environment in front. `config` must outlive it.
  static Node Here(const config::Config& config);
  /// Absolute path of a program; empty: there is none.
  std::string Find(const std::string& program) const;
};

}  // namespace gantry::ctl
