// SPDX-License-Identifier: Apache-2.0
//
// `VFormat` of programs that are to be small (gantry_small in cmake/gantry.cmake). std::vformat
// brings locales, streams and three ways to write a real number: two thirds of a megabyte.
#include <gantry/format.h>

#include "core/sdk/short_format.h"

namespace gantry {

std::string VFormat(std::string_view format, std::format_args args) {
  return ShortFormat(format, args);
}

}  // namespace gantry
