// SPDX-License-Identifier: Apache-2.0
//
// What shells complete of gantryctl's command lines, made of what --help says (arguments.h).
// Written when gantry is built, by gantryctl-manual.
#pragma once

#include <string>

#include "core/ctl/arguments.h"

namespace gantry::ctl {

/// Each completes commands, options, files, and ids of what runs, for which it asks
/// `gantryctl ps` for two seconds at most. Thread: any. Blocks: never.
std::string BashCompletion(const Help& help);
std::string ZshCompletion(const Help& help);
std::string FishCompletion(const Help& help);

}  // namespace gantry::ctl
