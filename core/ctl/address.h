// SPDX-License-Identifier: Apache-2.0
//
// Where gantry is asked, as --address says it.
#pragma once

#include <string>

#include <gantry/error.h>

namespace gantry::ctl {

struct Address {
  enum class Protocol { kTtrpc, kGrpc };

  Protocol protocol = Protocol::kTtrpc;
  /// Of a unix socket.
  std::string path;
};

/// A path, or `ttrpc+unix://PATH`: the engine's socket, by ttrpc. `unix://PATH`, as gRPC itself
/// writes it, or `grpc+unix://PATH`: the socket of gantry-grpc. Errors: kInvalidArgument.
Result<Address> ParseAddress(const std::string& text);

}  // namespace gantry::ctl
