// SPDX-License-Identifier: Apache-2.0
//
// A member of a JSON object as text, without a document being made of the object.
#pragma once

#include <string_view>

namespace gantry {

/// The value of `name`, without white space around it; empty: `object` has none. Of several the
/// last, as parsers have it. `object` is well-formed (`CheckJson`), else what comes back is some
/// part of it. A name that is written with escapes is another.
std::string_view JsonMember(std::string_view object, std::string_view name);

}  // namespace gantry
