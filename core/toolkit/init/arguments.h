// SPDX-License-Identifier: Apache-2.0
//
// How gantry-init is called.
#pragma once

#include <string>
#include <vector>

#include <gantry/error.h>

namespace gantry::init {

struct Arguments {
  std::string bundle;
  /// Descriptors; negative: there is none.
  int config = -1;
  int gate = -1;
  int result = -1;
  int console = -1;
  int listener = -1;
  std::vector<int> passed_on;
  bool sibling = false;
};

/// What `gantry-init` says of itself.
const char* Usage();

/// Errors: kInvalidArgument, naming the argument.
Result<Arguments> ReadArguments(const std::vector<std::string>& words);

}  // namespace gantry::init
