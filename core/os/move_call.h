// SPDX-License-Identifier: Apache-2.0
//
// One system call that moves bytes, asked until its answer counts. For
// `splice.cc`; a header so that tests can be the kernel.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include <gantry/error.h>
#include <gantry/toolkit/descriptors/unix_socket.h>

namespace gantry::os {

/// Repeats `call`, which answers as read(2) does, while signals interrupt it.
///
/// EIO counts only when it comes twice in a row. A terminal's master says it when the
/// other side is closed and nothing can be read. The kernel looks for what can be read
/// first: what was written and closed between the two looks is still in the line's
/// buffers at the first EIO, and read next. Nothing can be written after it, so the
/// second one is the end. Seen on Linux 6.18: up to 13 KB were missing after the first,
/// in 1 of 1,000 terminals on a busy machine.
/// Source: Linux 6.18, drivers/tty/n_tty.c (n_tty_read).
template <class Call>
Result<Transfer> MoveCall(std::string_view what, Call call) {
  bool failed_before = false;
  while (true) {
    const ssize_t moved = call();
    if (moved >= 0) {
      return Transfer{.bytes = static_cast<size_t>(moved), .end = moved == 0};
    }
    if (errno == EAGAIN) {
      return Transfer{.would_block = true};
    }
    if (errno == EINTR || (errno == EIO && !std::exchange(failed_before, true))) {
      continue;
    }
    Error error = ErrnoError(errno, what);
    if (error.sys_errno == EINVAL) {
      error.code = Code::kInvalidArgument;
    }
    return std::unexpected(std::move(error));
  }
}

}  // namespace gantry::os
