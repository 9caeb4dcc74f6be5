// SPDX-License-Identifier: Apache-2.0
//
// Moving bytes between descriptors without copying them through this process.
#pragma once

#include <cstddef>
#include <span>

#include <gantry/error.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/unique_fd.h>

namespace gantry::os {

/// Moves up to `max_bytes`; one of the two must be a pipe. `would_block` where
/// `from` is empty or `to` is full. Errors: INVALID_ARGUMENT where the kernel
/// cannot splice these two (a terminal before Linux 6.5, a file opened for
/// appending): copy instead.
/// EIO from a terminal whose other side is closed and that has been read to its end.
/// Blocks: never, if both are nonblocking.
Result<Transfer> Splice(int from, int to, size_t max_bytes);

/// Copies up to `max_bytes` from one pipe to another without consuming them.
Result<Transfer> Tee(int from, int to, size_t max_bytes);

/// read(2) and write(2) in the same terms. A terminal whose other side is
/// closed (EIO) counts as its end, when it has been read to its end.
Result<Transfer> ReadSome(int fd, std::span<char> buffer);
Result<Transfer> WriteSome(int fd, std::span<const char> data);

/// Bytes that wait in a pipe, FIFO, socket or terminal.
Result<size_t> BytesQueued(int fd);

/// How many bytes a pipe or FIFO has room for. Errors: where `fd` is none.
Result<size_t> PipeSize(int fd);

/// Asks for a pipe of `bytes` and gives the size that it got; a smaller one
/// where the user's limit forbids it. Source: pipe(7), F_SETPIPE_SZ.
Result<size_t> SetPipeSize(int fd, size_t bytes);

}  // namespace gantry::os
