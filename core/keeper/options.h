// SPDX-License-Identifier: Apache-2.0
//
// The keeper's command line.
//
//     gantry-keeper [--run-dir DIR] [--engine PATH] [--control-fd N] [--foreground]
//     gantry-keeper --check [--run-dir DIR]
//
// and, by a keeper only (reexec.h):
//
//     gantry-keeper --check-state-fd N
//     gantry-keeper [--run-dir DIR] --state-fd N [--previous-fd M]
//
// --run-dir     instead of $GANTRY_RUN_DIR or /run/gantry
// --engine      instead of the gantryd that is installed with this program
// --control-fd  an inherited descriptor that listens at DIR/keeper.sock already
// --foreground  the log goes to stderr, not to DIR/keeper.log
// --check       ends at once: with 0 where no keeper runs for DIR, with 1 and a
//               message where one does
#pragma once

#include <span>
#include <string>

#include <gantry/error.h>

namespace gantry::keeper {

struct CommandLine {
  std::string run_dir;
  std::string engine;
  int control_fd = -1;
  int check_state_fd = -1;
  int state_fd = -1;
  int previous_fd = -1;
  bool foreground = false;
  bool check = false;
};

/// `arguments` without the program's name. What is not given stays empty.
/// Errors: kInvalidArgument.
Result<CommandLine> ParseCommandLine(std::span<const std::string> arguments);

}  // namespace gantry::keeper
