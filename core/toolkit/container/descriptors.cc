// SPDX-License-Identifier: Apache-2.0
#include "core/toolkit/container/descriptors.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace gantry::container {
namespace {

constexpr unsigned kLast = ~0U;

Status CloseRange(unsigned first, unsigned last, unsigned flags) {
  if (first <= last && ::syscall(SYS_close_range, first, last, flags) != 0) {
    return FailErrno(errno, "close descriptors {} to {}", first, last);
  }
  return {};
}

}  // namespace

Status CloseAllBut(std::vector<int> kept) {
  std::ranges::sort(kept);
  unsigned first = STDERR_FILENO + 1;
  for (const int fd : kept) {
    if (fd < static_cast<int>(first)) {
      continue;
    }
    if (fd > static_cast<int>(first)) {
      GANTRY_CHECK_OK(CloseRange(first, static_cast<unsigned>(fd) - 1, 0));
    }
    first = static_cast<unsigned>(fd) + 1;
  }
  return CloseRange(first, kLast, 0);
}

Status SetStreams(const int (&streams)[3]) {
  UniqueFd null;
  // First out of the way: one stream may be another's number.
  UniqueFd copies[3];
  for (int i = 0; i < 3; ++i) {
    int from = streams[i];
    if (from < 0) {
      null.reset(::open("/dev/null", O_RDWR | O_CLOEXEC));
      if (!null) {
        return FailErrno(errno, "open '/dev/null' for stream {}", i);
      }
      from = null.get();
    }
    copies[i].reset(::fcntl(from, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    if (!copies[i]) {
      return FailErrno(errno, "duplicate descriptor {} for stream {}", from, i);
    }
  }
  for (int i = 0; i < 3; ++i) {
    if (::dup2(copies[i].get(), i) < 0) {
      return FailErrno(errno, "set stream {}", i);
    }
  }
  return {};
}

Status GiveStreams(uid_t owner) {
  for (int stream = 0; stream <= STDERR_FILENO; ++stream) {
    struct stat about{};
    if (::fstat(stream, &about) != 0) {
      return FailErrno(errno, "look at stream {}", stream);
    }
    const bool null = S_ISCHR(about.st_mode) && about.st_rdev == makedev(1, 3);
    if (!null && about.st_uid != owner && ::fchown(stream, owner, static_cast<gid_t>(-1)) != 0 &&
        errno != EINVAL && errno != EPERM && errno != EROFS) {
      return FailErrno(errno, "give stream {} to user {}", stream, owner);
    }
  }
  return {};
}

Result<int> MoveOutOfTheWay(int fd, size_t passed_on) {
  const int end = STDERR_FILENO + 1 + static_cast<int>(passed_on);
  const int moved = fd >= end ? fd : ::fcntl(fd, F_DUPFD_CLOEXEC, end);
  if (moved < 0) {
    return FailErrno(errno, "duplicate descriptor {}", fd);
  }
  return moved;
}

Result<UniqueFd> AboveStreams(UniqueFd fd) {
  if (!fd || fd.get() > STDERR_FILENO) {
    return fd;
  }
  return fd.Duplicate();
}

Status PassOn(const std::vector<int>& fds) {
  GANTRY_CHECK_OK(CloseRange(STDERR_FILENO + 1, kLast, CLOSE_RANGE_CLOEXEC));
  const int first = STDERR_FILENO + 1;
  const int end = first + static_cast<int>(fds.size());
  std::vector<UniqueFd> copies(fds.size());
  for (size_t i = 0; i < fds.size(); ++i) {
    copies[i].reset(::fcntl(fds[i], F_DUPFD_CLOEXEC, end));
    if (!copies[i]) {
      return FailErrno(errno, "duplicate descriptor {} to be passed on", fds[i]);
    }
  }
  for (size_t i = 0; i < fds.size(); ++i) {
    if (::dup2(copies[i].get(), first + static_cast<int>(i)) < 0) {
      return FailErrno(errno, "pass on descriptor {}", first + static_cast<int>(i));
    }
  }
  return {};
}

}  // namespace gantry::container
