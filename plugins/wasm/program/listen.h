// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::wasm {

/// A TCP socket that listens at `address`, which is ADDRESS:PORT or [ADDRESS]:PORT, in the network
/// namespace of the calling process; close-on-exec, not blocking. Errors: kInvalidArgument: that is
/// none; kFailedPrecondition: somebody else listens there; kPermissionDenied: the port is for who
/// has CAP_NET_BIND_SERVICE (net.ipv4.ip_unprivileged_port_start); the errno's.
Result<UniqueFd> Listen(const std::string& address);

}  // namespace gantry::wasm
