// SPDX-License-Identifier: Apache-2.0
//
// Where a collector of spans is, as OpenTelemetry's own variables say it.
#pragma once

#include <string>
#include <string_view>

#include <gantry/error.h>

namespace gantry::config {

/// Takes `http://HOST:PORT` and `unix:///PATH`. HOST is a name, an IPv4 address, or an IPv6 address
/// in brackets; a port is 1 to 65535; PATH has at most 107 bytes.
/// Gives what gRPC calls it: `dns:HOST:PORT`, `unix:/PATH`.
/// Errors: kInvalidArgument, what was expected instead.
Result<std::string> CollectorTarget(std::string_view endpoint);

}  // namespace gantry::config
