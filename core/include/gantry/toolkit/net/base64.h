// SPDX-License-Identifier: Apache-2.0
//
// How Go's encoding/json writes bytes, and how they are kept in JSON here.
// Source: RFC 4648, section 4.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gantry::net {

std::string ToBase64(std::string_view bytes);
/// None: the text is something else.
std::optional<std::string> FromBase64(std::string_view text);

}  // namespace gantry::net
