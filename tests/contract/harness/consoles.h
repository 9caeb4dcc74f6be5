// SPDX-License-Identifier: Apache-2.0
//
// What the guests of virtual machines have said last: for a rule that is not met.
#pragma once

#include <string>
#include <string_view>

namespace gantry::contract {

/// Of the machines below the run's folder `root` that there are, and of those that have ended,
/// which the engine's log tells: `log` is that of the rule. Empty: there was no machine.
std::string ConsolesOf(const std::string& root, std::string_view log);

}  // namespace gantry::contract
