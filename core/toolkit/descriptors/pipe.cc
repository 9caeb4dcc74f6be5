// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include <gantry/toolkit/descriptors/pipe.h>

namespace gantry {
namespace {

Result<std::pair<UniqueFd, UniqueFd>> NewPipe(int flags) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), flags | O_CLOEXEC) != 0) {
    return FailErrno(errno, "make a pipe");
  }
  return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

}  // namespace

Result<std::pair<UniqueFd, UniqueFd>> MakePipe() { return NewPipe(O_NONBLOCK); }

Result<std::pair<UniqueFd, UniqueFd>> MakeBlockingPipe() { return NewPipe(0); }

Status SetNonblocking(int fd, bool nonblocking) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0) {
    return FailErrno(errno, "get the flags of descriptor {}", fd);
  }
  const int wanted = nonblocking ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
  if (wanted != flags && fcntl(fd, F_SETFL, wanted) < 0) {
    return FailErrno(errno, "set the flags of descriptor {}", fd);
  }
  return {};
}

}  // namespace gantry
