// SPDX-License-Identifier: Apache-2.0
//
// What a command line of `gantryctl node-setup` says.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "core/ctl/arguments.h"

namespace gantry::ctl {

struct NodeSetupArguments {
  std::string handlers;
  std::string sandboxer = "podsandbox";
  std::string shim;
  std::string distribution;
  std::string containerd;
  std::string containerd_config;
  std::string socket;
  std::string config;
  bool dry_run = false;
  bool undo = false;
  bool check = false;
  bool runtime_classes = false;
  bool json = false;
};

/// What its --help says of options.
std::vector<Help::Option> NodeSetupOptions();

/// As `Parse` of arguments.h.
std::optional<int> ParseNodeSetup(const std::vector<std::string>& words,
                                  NodeSetupArguments& arguments, std::ostream& out,
                                  std::ostream& err);

}  // namespace gantry::ctl
