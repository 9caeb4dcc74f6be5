// SPDX-License-Identifier: Apache-2.0
//
// What gantry's own messages need of std::vformat, and little more.
#pragma once

#include <format>
#include <string>
#include <string_view>

namespace gantry {

/// As std::vformat, where a field is `{}` or `{N}`, with a fill of zeros, `#`, a width and one of
/// the letters `dxXo` for an integer. Fields of other kinds are there in their shortest form: an
/// error that is told without its columns is better than a program that ends over them.
std::string ShortFormat(std::string_view format, const std::format_args& args);

}  // namespace gantry
