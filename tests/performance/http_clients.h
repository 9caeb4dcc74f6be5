// SPDX-License-Identifier: Apache-2.0
//
// Clients of an HTTP server in a container's network.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include <gantry/error.h>

#include "tests/performance/callers.h"

namespace gantry::bench {

/// Connections to `port` of the loopback in the network namespace of the process `pid`, which ask
/// for `/`. An answer is 200, and has `text` in it.
Result<Callers> ConnectHttp(pid_t pid, uint16_t port, size_t count, const std::string& text);

}  // namespace gantry::bench
