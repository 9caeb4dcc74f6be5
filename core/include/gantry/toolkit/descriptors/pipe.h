// SPDX-License-Identifier: Apache-2.0
//
// Pipes, and whether a descriptor waits. Blocks: never. Thread: any.
#pragma once

#include <utility>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry {

/// Read end, then write end; CLOEXEC. Both are nonblocking.
Result<std::pair<UniqueFd, UniqueFd>> MakePipe();
/// The same for programs that know nothing of that: both block.
Result<std::pair<UniqueFd, UniqueFd>> MakeBlockingPipe();

/// Sets or clears O_NONBLOCK on the open file description, which each end of a pipe and of a pair
/// of sockets has for itself. Owner: `fd` is borrowed.
Status SetNonblocking(int fd, bool nonblocking);

}  // namespace gantry
