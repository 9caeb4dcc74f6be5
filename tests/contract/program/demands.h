// SPDX-License-Identifier: Apache-2.0
//
// What each rule demands of a backend, in a sentence.
#pragma once

#include <string_view>

namespace gantry::contract {

/// `rule`: SUITE.TEST. Empty: there is no such rule.
std::string_view DemandOf(std::string_view rule);

}  // namespace gantry::contract
