// SPDX-License-Identifier: Apache-2.0
#include "plugins/runc/exec_fifo.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include <gantry/deadline.h>
#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/backoff.h>
#include <gantry/toolkit/process/pidfd.h>

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

/// Whether all threads of the process stand still. True, too, when it has gone.
bool StandsStill(HostPid pid) {
  const std::string threads = Format("/proc/{}/task", pid.value);
  const auto names = ListDirectory(threads);
  return names && std::ranges::all_of(*names, [&](const std::string& thread) {
           const auto stat = ReadFile(Format("{}/{}/stat", threads, thread), 4096);
           if (!stat) {
             return stat.error().sys_errno == ENOENT || stat.error().sys_errno == ESRCH;
           }
           // The state is behind the name, which is in brackets.
           const size_t name_end = stat->rfind(')');
           return name_end + 2 < stat->size() &&
                  std::string_view("TXZ").contains((*stat)[name_end + 2]);
         });
}

/// Has a process stand still, until this object goes.
class Halt {
 public:
  Halt(HostPid pid, const UniqueFd& pidfd) : pid_(pid), pidfd_(pidfd) {}

  Halt(const Halt&) = delete;
  Halt& operator=(const Halt&) = delete;

  ~Halt() {
    if (begun_) {
      End();
    }
  }

  /// Again: fine.
  Status Begin(Deadline deadline) {
    begun_ = true;
    IgnoreError(SendSignal(pidfd_.get(), SIGSTOP), "it fails only for a process that has ended");
    Backoff backoff({.no_event = "a process that stops is told to its parent only",
                     .first = std::chrono::microseconds(50),
                     .longest = std::chrono::milliseconds(1)});
    while (!StandsStill(pid_)) {
      if (!backoff.Sleep(deadline)) {
        return Fail(Code::kDeadlineExceeded, "start: the init process cannot be halted");
      }
    }
    return {};
  }

  /// Also of a halt that an engine before this one has begun.
  void End() {
    begun_ = false;
    IgnoreError(SendSignal(pidfd_.get(), SIGCONT), "it fails only for a process that has ended");
  }

 private:
  HostPid pid_;
  const UniqueFd& pidfd_;
  bool begun_ = false;
};

/// Whether the init has left its byte. It stays there, for the engine after this one.
bool HasByte(const UniqueFd& fifo) {
  pollfd fd{fifo.get(), POLLIN, 0};
  return poll(&fd, 1, 0) == 1 && (fd.revents & POLLIN) != 0;
}

/// Waits for the init's byte, or for its end. The byte counts first: an init
/// that is done at once has left it in the fifo. A hang-up says nothing: the init may have
/// opened the fifo, left no byte and be about to end; or it is opening it. The kernel's poll
/// looks without the lock under which an opening counts its writer (Linux 6.18, fs/pipe.c,
/// `pipe_poll` and `fifo_open`): of a million openings, polled all the time, seven showed one.
/// So that is looked at again.
Status Awaited(const UniqueFd& fifo, const std::string& path, const UniqueFd& pidfd,
               Deadline deadline) {
  constexpr int kLookAgainMs = 1;
  bool hung_up = false;
  for (;;) {
    std::array<pollfd, 2> fds = {pollfd{hung_up ? -1 : fifo.get(), POLLIN, 0},
                                 pollfd{pidfd.get(), POLLIN, 0}};
    const int left = PollTimeout(deadline);
    poll(fds.data(), fds.size(), hung_up ? std::min(left, kLookAgainMs) : left);
    if (HasByte(fifo)) {
      return {};
    }
    if (fds[1].revents != 0) {
      return HasEnded();
    }
    if (Left(deadline).count() == 0) {
      return Fail(Code::kDeadlineExceeded, "start: the init process does not open '{}'", path);
    }
    hung_up = (fds[0].revents & POLLHUP) != 0;
  }
}

}  // namespace

Status ReleaseInit(const std::string& path, const HostProcess& init, Deadline deadline,
                   const ReleaseAids& aids) {
  if (aids.reader && HasByte(aids.reader)) {
    // The init has run since, and may be gone.
    return RemoveFile(path);
  }
  // Before the fifo is touched: from then on the init may run, and be gone.
  const auto pidfd = OpenPidfd(init.pid());
  const auto start_time = StartTimeOf(init.pid());
  if (!pidfd || init.Ended() || !start_time ||
      (init.start_time() != 0 && *start_time != init.start_time())) {
    // It may have run, and left its byte, since the first look.
    return aids.reader && HasByte(aids.reader) ? RemoveFile(path) : HasEnded();
  }
  Halt halt(init.pid(), *pidfd);
  if (aids.reader) {
    halt.End();
    GANTRY_CHECK_OK(Awaited(aids.reader, path, *pidfd, deadline));
    return RemoveFile(path);
  }
  if (aids.again) {
    GANTRY_CHECK_OK(halt.Begin(deadline));
  }
  const UniqueFd writer(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
  if (writer) {
    GANTRY_CHECK_OK(Written(writer, path));
  } else if (errno == ENXIO) {
    GANTRY_CHECK_OK(halt.Begin(deadline));
    const UniqueFd reader(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
    if (!reader) {
      return FailErrno(errno, "open '{}'", path);
    }
    GANTRY_CHECK_OK(aids.keep_reader(reader));
    halt.End();
    GANTRY_CHECK_OK(Awaited(reader, path, *pidfd, deadline));
  } else {
    return FailErrno(errno, "open '{}'", path);
  }
  return RemoveFile(path);
}

Result<bool> HoldsFifo(HostPid pid, const std::string& path) {
  struct stat fifo = {};
  if (stat(path.c_str(), &fifo) != 0) {
    return false;
  }
  const std::string descriptors = Format("/proc/{}/fd", pid.value);
  GANTRY_TRY(const std::vector<std::string> names, ListDirectory(descriptors));
  for (const std::string& name : names) {
    struct stat held = {};
    if (stat(Format("{}/{}", descriptors, name).c_str(), &held) == 0 &&
        held.st_dev == fifo.st_dev && held.st_ino == fifo.st_ino) {
      return true;
    }
  }
  return false;
}

}  // namespace gantry::runc
