// SPDX-License-Identifier: Apache-2.0
//
// The manual page of gantryctl, made of what --help says (arguments.h). Written when gantry is
// built, by gantryctl-manual.
#pragma once

#include <string>

#include "core/ctl/arguments.h"

namespace gantry::ctl {

/// gantryctl(8), as roff(7). Thread: any. Blocks: never.
std::string ManualPage(const Help& help);

}  // namespace gantry::ctl
