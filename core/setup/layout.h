// SPDX-License-Identifier: Apache-2.0
//
// Where the containerd of a node has its files, by who has installed it.
// Thread: any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>

#include "core/setup/config_file.h"

namespace gantry::setup {

struct Layout {
  /// containerd, k3s or rke2.
  std::string distribution = {};
  /// What containerd reads.
  std::string config = {};
  /// It is written anew from a template whenever the distribution starts.
  bool generated = false;
  /// The program; empty: `containerd` of PATH.
  std::string containerd = {};
  std::string socket = {};
  /// What has containerd read its configuration again.
  std::string restart = {};

  /// The template that a generated configuration of this version is made from.
  /// Source: k3s 1.31 to 1.35, pkg/agent/templates.
  std::string TemplateOf(int config_version) const;
  /// Folders in which each `*.toml` is read, as the configuration says. Those of k3s and rke2 are
  /// in the configuration that they write.
  std::vector<std::string> DropInFolders(const ConfigFile& parsed) const;
  /// All files that this program may have written to, whatever the configuration says.
  std::vector<std::string> Candidates() const;
};

inline constexpr std::string_view kDropInName = "gantry.toml";

/// `distribution`: containerd, k3s, rke2, or empty: the one that is there. `root` is in front of
/// all paths. `config`: another file of containerd's; empty: the distribution's. Errors:
/// kInvalidArgument: no such distribution; kFailedPrecondition: both k3s and rke2 are there.
/// Blocks: on files.
Result<Layout> FindLayout(const std::string& root, const std::string& distribution,
                          const std::string& config);

}  // namespace gantry::setup
