// SPDX-License-Identifier: Apache-2.0
#include "core/os/splice.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include <gantry/toolkit/descriptors/unix_socket.h>

#include "core/os/move_call.h"

namespace gantry::os {

Result<Transfer> Splice(int from, int to, size_t max_bytes) {
  return MoveCall("splice", [&] {
    return splice(from, nullptr, to, nullptr, max_bytes, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
  });
}

Result<Transfer> Tee(int from, int to, size_t max_bytes) {
  return MoveCall("tee", [&] { return tee(from, to, max_bytes, SPLICE_F_NONBLOCK); });
}

Result<Transfer> ReadSome(int fd, std::span<char> buffer) {
  auto moved = MoveCall("read", [&] { return read(fd, buffer.data(), buffer.size()); });
  if (!moved && moved.error().sys_errno == EIO && isatty(fd) == 1) {
    return Transfer{.end = true};
  }
  return moved;
}

Result<Transfer> WriteSome(int fd, std::span<const char> data) {
  auto moved = MoveCall("write", [&] { return write(fd, data.data(), data.size()); });
  if (moved) {
    moved->end = false;
  }
  return moved;
}

Result<size_t> BytesQueued(int fd) {
  int bytes = 0;
  if (ioctl(fd, FIONREAD, &bytes) < 0) {
    return FailErrno(errno, "ask descriptor {} for what waits", fd);
  }
  return static_cast<size_t>(bytes);
}

Result<size_t> PipeSize(int fd) {
  const int size = fcntl(fd, F_GETPIPE_SZ);
  if (size < 0) {
    return FailErrno(errno, "ask descriptor {} for the size of its pipe", fd);
  }
  return static_cast<size_t>(size);
}

Result<size_t> SetPipeSize(int fd, size_t bytes) {
  const auto wanted = static_cast<int>(
      std::min<size_t>(bytes, static_cast<size_t>(std::numeric_limits<int>::max())));
  int size = fcntl(fd, F_SETPIPE_SZ, wanted);
  if (size < 0 && (errno == EPERM || errno == EBUSY)) {
    size = fcntl(fd, F_GETPIPE_SZ);
  }
  if (size < 0) {
    return FailErrno(errno, "set the size of pipe {}", fd);
  }
  return static_cast<size_t>(size);
}

}  // namespace gantry::os
