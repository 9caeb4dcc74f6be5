// SPDX-License-Identifier: Apache-2.0
//
// `gantryctl doctor`: what this node lacks for which backend, and how to get it.
// It looks for itself, so that it helps where gantry does not start.
#pragma once

#include <string>
#include <vector>

#include <gantry/error.h>

#include "core/config/config.h"
#include "core/ctl/node.h"

namespace gantry::ctl {

struct Finding {
  /// `node`, `gantry`, `containerd`, or a backend.
  std::string area;
  /// `ok`; `missing`: something does not work without it; `optional`: missing,
  /// but only some calls need it.
  std::string level;
  std::string what;
  /// How to get it, or where it was found.
  std::string detail;

  bool operator==(const Finding&) const = default;
};

/// Looks at everything, and asks the backends of the configuration. Blocks: for
/// the tools' `--version` and the plugins.
std::vector<Finding> Examine(const Node& node, const config::Config& config);

/// Nothing is `missing`.
bool Healthy(const std::vector<Finding>& findings);

std::string FindingsTable(const std::vector<Finding>& findings);
std::string FindingsJson(const std::vector<Finding>& findings);

}  // namespace gantry::ctl
