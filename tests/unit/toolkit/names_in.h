// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <gantry/toolkit/files/files.h>

namespace gantry {

/// Names in the directory, in order.
inline std::vector<std::string> NamesIn(const std::string& directory) {
  auto names = ListDirectory(directory).value_or(std::vector<std::string>());
  std::ranges::sort(names);
  return names;
}

}  // namespace gantry
