// SPDX-License-Identifier: Apache-2.0
//
// `gantryctl doctor`: what this node lacks for which backend, and how to get it.
// It looks for itself, so that it helps where gantry does not start.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <gantry/error.h>

#include "core/config/config.h"

namespace gantry::ctl {

struct Finding {
  /// `node`, `gantry`, `containerd`, or a backend.
  std::string area;
  /// `ok`; `missing`: something does not work without it; `optional`: missing,
  /// but only some calls need it; `unused`: missing for a backend that the
  /// configuration does not name.
  std::string level;
  std::string what;
  /// How to get it, or where it was found.
  std::string detail;

  bool operator==(const Finding&) const = default;
};

/// Where to look. Tests give folders of their own.
struct Node {
  /// In front of every absolute path below.
  std::string root;
  std::vector<std::string> path = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
                                   "/usr/bin",        "/sbin",          "/bin"};
  std::string run_dir;
  /// The folder with gantryd, gantry-keeper and plugins/.
  std::string libexec_dir;
  /// What a tool writes when it is run.
  std::function<Result<std::string>(const std::vector<std::string>&)> first_line;

  /// This machine, with PATH of the environment in front.
  static Node Here();
  /// Absolute path of a program; empty: there is none.
  std::string Find(const std::string& program) const;
};

/// Looks at everything. Blocks: for the tools' `--version`.
std::vector<Finding> Examine(const Node& node, const config::Config& config);

/// Nothing is `missing`.
bool Healthy(const std::vector<Finding>& findings);

std::string FindingsTable(const std::vector<Finding>& findings);
std::string FindingsJson(const std::vector<Finding>& findings);

}  // namespace gantry::ctl
