// SPDX-License-Identifier: Apache-2.0
//
// The command line of gantry-backend-test.
#pragma once

#include <string>
#include <vector>

#include <gantry/error.h>

#include "tests/contract/harness/setup.h"

namespace gantry::contract {

inline constexpr const char* kUsage =
    "usage: gantry-backend-test --plugin FILE [--options FILE] [--name NAME] [--rule PATTERN]\n"
    "                           [--own-network] [--list] [--verbose]\n"
    "\n"
    "  --plugin FILE   the backend's libgantry_NAME.so\n"
    "  --options FILE  a gantry.yaml: of it, the options of the backend and of its handler\n"
    "  --name NAME     where the file is not called libgantry_NAME.so\n"
    "  --own-network   for a backend that refuses the node's network: all have one of their own\n"
    "  --rule PATTERN  the rules of this name; * and ? as in a shell, : between several\n"
    "  --list          names the rules, and what each demands\n"
    "  --verbose       why a rule is not met, at full length, with the engine's log\n"
    "\n"
    "Status: 0 all rules are met or not supported, 1 one is not met or no container lives,\n"
    "2 nothing was tested.\n";

struct Arguments {
  bool help = false;
  bool list = false;
  /// As GoogleTest's filter.
  std::string filter = "*";
  /// What was asked for, one by one; empty: all.
  std::vector<std::string> patterns;
  Setup setup;
};

/// Errors: kInvalidArgument: what is wrong with the words, the options' file or the
/// plugin, which is looked at in a process of its own.
Result<Arguments> ReadArguments(int argc, char** argv);

}  // namespace gantry::contract
