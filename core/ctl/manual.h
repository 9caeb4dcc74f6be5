// SPDX-License-Identifier: Apache-2.0
//
// The manual page of gantryctl and what shells complete of its command lines, made of what --help
// says (arguments.h). Written when gantry is built, by gantryctl-manual.
#pragma once

#include <string>

#include "core/ctl/arguments.h"

namespace gantry::ctl {

/// gantryctl(8), as roff(7).
std::string ManualPage(const Help& help);

/// Each completes commands, options, files, and ids of what runs, for which it asks
/// `gantryctl ps` for two seconds at most.
std::string BashCompletion(const Help& help);
std::string ZshCompletion(const Help& help);
std::string FishCompletion(const Help& help);

}  // namespace gantry::ctl
