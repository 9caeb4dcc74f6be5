// SPDX-License-Identifier: Apache-2.0
//
// gRPC for programs that speak ttrpc (gantryctl): what one asks on a socket is asked of a gRPC
// server, call by call. So gRPC's library is in no other program.
#pragma once

#include <string>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::door {

/// Until the other end of `socket` is closed. `path`: a server's unix socket. Owner: takes
/// `socket`. Blocks. Errors: of the socket.
Status Dial(UniqueFd socket, const std::string& path);

}  // namespace gantry::door
