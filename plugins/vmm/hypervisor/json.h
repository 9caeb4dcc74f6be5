// SPDX-License-Identifier: Apache-2.0
//
// JSON as VMMs are told it. What a VMM answers is a stranger's and is read by `ParseJson`
// (gantry/json.h), never by this library's own parser.
#pragma once

#include <nlohmann/json.hpp>

namespace gantry::vmm {

using Json = nlohmann::json;

}  // namespace gantry::vmm
