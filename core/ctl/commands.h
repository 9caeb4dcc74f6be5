// SPDX-License-Identifier: Apache-2.0
//
// gantryctl without its main(): command line in, text and exit code out.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace gantry::ctl {

/// Exit codes: 0 done; 1 failed, or `doctor` found something missing; 2 wrong
/// command line. Blocks: for the engine and for tools that are run.
int RunCommand(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err);

}  // namespace gantry::ctl
