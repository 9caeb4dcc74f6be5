// SPDX-License-Identifier: Apache-2.0
//
// `gantryctl node-setup`: has containerd know gantry's runtimes, or forget them. What it does is in
// core/setup; here is how it is asked for and told.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::ctl {

inline constexpr std::string_view kNodeSetup = "node-setup";

/// `words`: what follows the command. `config`: gantry's configuration, where none is named. Exit
/// code as of `RunCommand`; --check fails where there is something to do. Blocks: for containerd.
int NodeSetup(const std::vector<std::string>& words, const std::string& config, std::ostream& out,
              std::ostream& err);

}  // namespace gantry::ctl
