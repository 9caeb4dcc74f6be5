// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace gantry::contract {

/// Names that are none, of which some lead out of the folder they would be in.
inline const std::vector<std::string>& Escapes() {
  static const std::vector<std::string> names = {
      "../../escape",
      "/escape",
      "a/../../../escape",
      "..",
      ".",
      "a\nb",
      std::string("a\0b", 3),
      std::string(10'000, 'x'),
      "a/b",
      "\xff\xfe",
      "a.slice/../../b.service",
  };
  return names;
}

}  // namespace gantry::contract
