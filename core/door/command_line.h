// SPDX-License-Identifier: Apache-2.0
//
// gantry-grpc's command line. The engine gives it, or gantryctl.
#pragma once

#include <string>

#include <gantry/error.h>

namespace gantry::door {

struct CommandLine {
  /// The keeper's.
  std::string run_dir;
  /// Where the folders of the controller's sandboxes are.
  std::string sandboxes;
  /// containerd's socket, as it calls itself to its shims.
  std::string containerd;
  std::string containerd_ttrpc;
  /// A listening socket; -1: nothing is served.
  int listen_fd = -1;
  /// Where that is: for who looks at the process.
  std::string address;
  /// The collector that gets the engine's spans, as gRPC names it; empty: none.
  std::string export_to;
  /// Instead of serving: the path of a server's socket, which is asked what comes on `socket_fd`.
  std::string dial;
  int socket_fd = -1;
  bool help = false;
  bool version = false;
};

/// Errors: kInvalidArgument.
Result<CommandLine> ParseCommandLine(int argc, char** argv);

std::string Usage();

}  // namespace gantry::door
