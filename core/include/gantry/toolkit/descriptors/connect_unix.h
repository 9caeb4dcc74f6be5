// SPDX-License-Identifier: Apache-2.0
//
// Connecting to a UNIX socket in a bundle, whose path may be longer than an address.
#pragma once

#include <string>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry {

/// A connected nonblocking stream socket. `path` is of any length, its last name of 80 bytes at
/// the most; where the listener's queue is full, that is waited for. Errors: as `ConnectUnix`, with
/// the errno, ENAMETOOLONG for a name that is too long; kDeadlineExceeded: the queue is still full.
/// Blocks: up to `deadline`. Thread: any. Source: unix(7).
Result<UniqueFd> ConnectUnixBy(const std::string& path, Deadline deadline);

}  // namespace gantry
