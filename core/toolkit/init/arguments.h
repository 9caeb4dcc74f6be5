// SPDX-License-Identifier: Apache-2.0
//
// How gantry-init is called.
#pragma once

#include <string>
#include <vector>

#include <gantry/error.h>

namespace gantry::init {

struct Arguments {
  /// One process more in a container that runs; else a container is made.
  bool exec = false;
  std::string bundle;
  /// The container's; empty: nobody has to know.
  std::string id;
  /// Descriptors; negative: there is none.
  int config = -1;
  /// Of `exec`: the `process` object, and a pidfd of the container's init.
  int process = -1;
  int init = -1;
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
