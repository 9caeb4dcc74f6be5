// SPDX-License-Identifier: Apache-2.0
//
// How gantry-init is called, and a program that is called as it is.
#pragma once

#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/init/gated_program.h>

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

/// What the program says of itself.
std::string Usage(const GatedProgram& of);

/// Errors: kInvalidArgument, naming the argument.
Result<Arguments> ReadArguments(const std::vector<std::string>& words, const GatedProgram& of);

}  // namespace gantry::init
