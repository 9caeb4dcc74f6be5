// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include <gantry/unique_fd.h>

namespace gantry {

void UniqueFd::reset(int fd) {
  const int old = std::exchange(fd_, fd);
  if (old >= 0) {
    const int saved = errno;
    close(old);
    errno = saved;
  }
}

Result<UniqueFd> UniqueFd::Duplicate() const {
  UniqueFd copy(fcntl(fd_, F_DUPFD_CLOEXEC, 3));
  if (!copy) {
    return FailErrno(errno, "duplicate descriptor {}", fd_);
  }
  return copy;
}

}  // namespace gantry
