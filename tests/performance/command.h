// SPDX-License-Identifier: Apache-2.0
//
// One program run to its end and timed, as containerd runs a shim: in a folder,
// with its own process group, input and output on pipes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <gantry/error.h>

namespace gantry::bench {

struct Command {
  std::vector<std::string> argv;
  std::string folder = "/";
  std::map<std::string, std::string> env;  ///< On top of our own.
  std::string input;                       ///< At most what a pipe holds.
};

struct Finished {
  std::string out;
  double milliseconds = 0;  ///< From before the exec to its end, reaped, streams at their end.
};

/// Errors: kInternal when it cannot be started or ends with another status than
/// 0 (with what it printed); kDeadlineExceeded after 30 s, when it is killed.
Result<Finished> Run(const Command& command);

}  // namespace gantry::bench
