// SPDX-License-Identifier: Apache-2.0
//
// Commands that a backend brings along: `gantryctl NAME WORD...` is the program gantryctl-NAME
// beside gantryd, with these words. So gantryctl need not know of it, and a backend of others can
// have its own.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace gantry::ctl {

/// Becomes that program. Returns where there is none, or an exit code where it cannot be
/// executed. `words`: of the command line, NAME first.
std::optional<int> RunBackendTool(const std::vector<std::string>& words, std::ostream& err);

}  // namespace gantry::ctl
