// SPDX-License-Identifier: Apache-2.0
#include <gantry/format.h>

namespace gantry {

std::string VFormat(std::string_view format, std::format_args args) {
  return std::vformat(format, args);
}

}  // namespace gantry
