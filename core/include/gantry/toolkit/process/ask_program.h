// SPDX-License-Identifier: Apache-2.0
//
// Asking a program what it is: its version, its flags. For a look at the node only; whatever
// is to live is started by the keeper.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <gantry/error.h>

namespace gantry {

struct ProgramQuestion {
  /// Not looked up in PATH.
  std::string program;
  std::vector<std::string> arguments;
  /// `NAME=value`; no others.
  std::vector<std::string> environment{};
  /// Its standard input; empty: /dev/null.
  std::string input{};
  /// Takes what it writes to its standard error, too.
  bool with_errors = false;
  size_t max_bytes = 4096;
  std::chrono::milliseconds limit = std::chrono::seconds(2);
};

/// What it has written by its end, or within the limit, or up to `max_bytes`; then it is
/// killed. It is a child of the caller, who
/// must not reap others' children. Errors: the program cannot be run.
/// Blocks: up to `limit`. Thread: any.
Result<std::string> AskProgram(const ProgramQuestion& question);

}  // namespace gantry
