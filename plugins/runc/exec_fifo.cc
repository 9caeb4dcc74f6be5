// SPDX-License-Identifier: Apache-2.0
#include "plugins/runc/exec_fifo.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include <gantry/format.h>

namespace gantry::runc {
namespace {

Status Written(const UniqueFd& fifo, const std::string& path) {
  // SIGPIPE cannot hit: the fifo is empty, and if its reader has just gone the
  // engine ignores that signal.
  const char byte = 0;
  if (write(fifo.get(), &byte, 1) != 1) {
    return FailErrno(errno, "write '{}'", path);
  }
  return {};
}

std::unexpected<Error> HasEnded() {
  return Fail(Code::kFailedPrecondition, "start: the init process has ended");
}

/// Waits for the init's byte, or for its end. The byte counts first: an init
/// that is done at once has left it in the fifo.
Status Awaited(const UniqueFd& fifo, const std::string& path, const UniqueFd& pidfd,
               Deadline deadline) {
  std::array<pollfd, 2> fds = {pollfd{fifo.get(), POLLIN, 0}, pollfd{pidfd.get(), POLLIN, 0}};
  for (;;) {
    const int ready = poll(fds.data(), fds.size(), PollTimeout(deadline));
    if (ready == 0) {
      return Fail(Code::kDeadlineExceeded, "start: the init process does not open '{}'", path);
    }
    char byte = 0;
    if (ready > 0 && read(fifo.get(), &byte, 1) == 1) {
      return {};
    }
    if (ready > 0 && fds[1].revents != 0) {
      return HasEnded();
    }
    if ((fds[0].revents & POLLHUP) != 0) {
      // Opened and closed without a byte: the init is about to end.
      fds[0].fd = -1;
    }
  }
}

}  // namespace

Status ReleaseInit(const std::string& path, const HostProcess& init, Deadline deadline) {
  // Before the fifo is touched: from then on the init may run, and be gone.
  const auto pidfd = OpenPidfd(init.pid());
  const auto start_time = StartTimeOf(init.pid());
  if (!pidfd || init.Ended() || !start_time ||
      (init.start_time() != 0 && *start_time != init.start_time())) {
    return HasEnded();
  }
  const UniqueFd writer(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
  if (writer) {
    GANTRY_CHECK_OK(Written(writer, path));
  } else if (errno == ENXIO) {
    const UniqueFd reader(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
    if (!reader) {
      return FailErrno(errno, "open '{}'", path);
    }
    GANTRY_CHECK_OK(Awaited(reader, path, *pidfd, deadline));
  } else {
    return FailErrno(errno, "open '{}'", path);
  }
  return RemoveFile(path);
}

bool HoldsFifo(HostPid pid, const std::string& path) {
  struct stat fifo = {};
  if (stat(path.c_str(), &fifo) != 0) {
    return false;
  }
  const std::string descriptors = Format("/proc/{}/fd", pid.value);
  for (const std::string& name : ListDirectory(descriptors)) {
    struct stat held = {};
    if (stat(Format("{}/{}", descriptors, name).c_str(), &held) == 0 &&
        held.st_dev == fifo.st_dev && held.st_ino == fifo.st_ino) {
      return true;
    }
  }
  return false;
}

}  // namespace gantry::runc
