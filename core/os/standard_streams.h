// SPDX-License-Identifier: Apache-2.0
//
// What a short-lived program is told and answers on its standard streams.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <gantry/error.h>

namespace gantry::os {

/// All of standard input; nothing where that is a terminal or closed.
/// Errors: kInvalidArgument above `max_bytes`; else the errno's. Blocks: until its end.
Result<std::string> ReadInput(size_t max_bytes);

/// Errors: the errno's; a part may be written. Blocks: until the reader has taken it.
Status Print(int fd, std::string_view text);

}  // namespace gantry::os
