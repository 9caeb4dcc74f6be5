// SPDX-License-Identifier: Apache-2.0
//
// gRPC spoken by a program that does not have its library: a gantry-grpc of its own is the client,
// and is asked by ttrpc.
#pragma once

#include <string>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::ctl {

/// A connected socket, for rpc::BlockingClient: what is asked there is asked of the gRPC server
/// whose unix socket `path` is. Its program ends with it. Errors: kNotFound: gantry-grpc is not
/// installed; of starting it. Who does not listen is told by the calls, with kUnavailable. Thread:
/// any that does not end before. Blocks: until the program runs.
Result<UniqueFd> DialGrpc(const std::string& path);

}  // namespace gantry::ctl
