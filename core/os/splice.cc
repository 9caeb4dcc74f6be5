// SPDX-License-Identifier: Apache-2.0
#include "core/os/splice.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string_view>

namespace gantry::os {

namespace {

/// Repeats `call` while signals interrupt it, and says how it ended.
template <class Call>
Result<Transfer> Move(std::string_view what, Call call) {
  while (true) {
    const ssize_t moved = call();
    if (moved >= 0) {
      return Transfer{.bytes = static_cast<size_t>(moved), .end = moved == 0};
    }
    if (errno == EAGAIN) {
      return Transfer{.would_block = true};
    }
    if (errno != EINTR) {
      Error error = ErrnoError(errno, what);
      if (error.sys_errno == EINVAL) {
        error.code = Code::kInvalidArgument;
      }
      return std::unexpected(std::move(error));
    }
  }
}

}  // namespace

Result<std::pair<UniqueFd, UniqueFd>> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) {
    return FailErrno(errno, "make a pipe");
  }
  return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

Result<Transfer> Splice(int from, int to, size_t max_bytes) {
  return Move("splice", [&] {
    return splice(from, nullptr, to, nullptr, max_bytes, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
  });
}

Result<Transfer> Tee(int from, int to, size_t max_bytes) {
  return Move("tee", [&] { return tee(from, to, max_bytes, SPLICE_F_NONBLOCK); });
}

Result<Transfer> ReadSome(int fd, std::span<char> buffer) {
  auto moved = Move("read", [&] { return read(fd, buffer.data(), buffer.size()); });
  if (!moved && moved.error().sys_errno == EIO && isatty(fd) == 1) {
    return Transfer{.end = true};
  }
  return moved;
}

Result<Transfer> WriteSome(int fd, std::span<const char> data) {
  auto moved = Move("write", [&] { return write(fd, data.data(), data.size()); });
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
