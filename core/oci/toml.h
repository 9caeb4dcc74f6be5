// SPDX-License-Identifier: Apache-2.0
//
// TOML to JSON: the handler's options table as CRI passes it on. The library
// behind it is seen in toml.cc only.
#pragma once

#include <string>
#include <string_view>

#include <gantry/error.h>

namespace gantry::oci {

/// The document as a JSON object; dates become strings. `what` is what errors
/// call it. Errors: kInvalidArgument with line and column.
Result<std::string> TomlToJson(std::string_view text, std::string_view what);

}  // namespace gantry::oci
