// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gantry::ctl {

/// What `gantryctl --help` says before the options.
inline constexpr char kHelp[] = R"(usage: gantryctl COMMAND [OPTION...]

  ps              all sandboxes and containers of all backends
  inspect ID      one of them, with its processes
  status          the engine, its keeper and its backends
  check [FILE]    a configuration file, or a plugin (.so); default: the configuration
  doctor          what this node lacks for which backend, and how to get it
  restart         a newly started engine in place of the one that runs
  upgrade         the same, with --engine of another program; what runs goes on;
                  with --keeper: the keeper becomes that program
  delete ID       ends and forgets what is left out since engines crashed of it
                  (see status); with --all everything that runs: for a node on which
                  containerd is gone for good
  NAME ...        commands of a backend that has some: gantryctl wasm --help

)";

}  // namespace gantry::ctl
