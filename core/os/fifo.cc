// SPDX-License-Identifier: Apache-2.0
#include "core/os/fifo.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/pipe.h>

namespace gantry::os {

namespace {

std::string ProcPath(int fd) { return Format("/proc/self/fd/{}", fd); }

}  // namespace

Result<UniqueFd> OpenName(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!fd) {
    return FailErrno(errno, "open '{}'", path);
  }
  return fd;
}

bool IsFifo(int fd) {
  struct stat info{};
  return fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode);
}

bool IsTerminal(int fd) { return isatty(fd) == 1; }

Result<UniqueFd> OpenPipeEnd(int fd, PipeEnd end) {
  const int mode = end == PipeEnd::kRead ? O_RDONLY : end == PipeEnd::kWrite ? O_WRONLY : O_RDWR;
  UniqueFd opened(open(ProcPath(fd).c_str(), mode | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!opened) {
    return FailErrno(errno, "open a pipe's end again");
  }
  return opened;
}

Result<UniqueFd> OpenWriteEnd(int fd) {
  Result<UniqueFd> write_end = OpenPipeEnd(fd, PipeEnd::kWrite);
  if (write_end || write_end.error().sys_errno != ENXIO) {
    return write_end;
  }
  GANTRY_TRY(const UniqueFd both, OpenPipeEnd(fd, PipeEnd::kBoth));
  return OpenPipeEnd(fd, PipeEnd::kWrite);
}

Status ChangeOwner(int fd, std::optional<uid_t> uid, std::optional<gid_t> gid) {
  constexpr auto kUnchanged = static_cast<uid_t>(-1);
  if (fchownat(fd, "", uid.value_or(kUnchanged), gid.value_or(kUnchanged), AT_EMPTY_PATH) < 0) {
    return FailErrno(errno, "change the owner of a file");
  }
  return {};
}

bool HasReader(int write_end) {
  pollfd query{.fd = write_end, .events = 0, .revents = 0};
  return poll(&query, 1, 0) == 0;
}

Result<UniqueFd> OpenLogFile(const std::string& path, mode_t mode) {
  // O_NONBLOCK: a fifo without a reader is an error, not a wait.
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, mode));
  if (!fd) {
    return FailErrno(errno, "open '{}'", path);
  }
  GANTRY_CHECK_OK(SetNonblocking(fd.get(), false));
  return fd;
}

Status SeekToEnd(int fd) {
  if (lseek(fd, 0, SEEK_END) < 0) {
    return FailErrno(errno, "seek to the end of a file");
  }
  return {};
}

Status SetWindowSize(int fd, uint16_t columns, uint16_t rows) {
  const winsize size{.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  if (ioctl(fd, TIOCSWINSZ, &size) < 0) {
    return FailErrno(errno, "set the size of a terminal");
  }
  return {};
}

bool IsStreamSocket(int fd) {
  int type = 0;
  socklen_t size = sizeof(type);
  return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

Status ShutDownWriting(int socket) {
  if (shutdown(socket, SHUT_WR) < 0 && errno != ENOTCONN) {
    return FailErrno(errno, "half-close a socket");
  }
  return {};
}

Result<FileUse> FileUse::Open() {
  UniqueFd notify(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!notify) {
    return FailErrno(errno, "watch the use of files");
  }
  return FileUse(std::move(notify));
}

Result<FileUse> FileUse::Watch(int fd) {
  GANTRY_TRY(FileUse use, Open());
  if (auto added = use.Add(fd); !added) {
    return std::unexpected(std::move(added).error());
  }
  return use;
}

Result<int> FileUse::Add(int fd) {
  const int file = inotify_add_watch(fd_.get(), ProcPath(fd).c_str(), IN_OPEN | IN_ACCESS);
  if (file < 0) {
    return FailErrno(errno, "watch a file's use");
  }
  return file;
}

void FileUse::Remove(int file) { inotify_rm_watch(fd_.get(), file); }

FileUse::Used FileUse::Take() {
  Used used;
  alignas(inotify_event) std::array<char, 4096> events{};
  while (true) {
    const ssize_t count = read(fd_.get(), events.data(), events.size());
    if (count <= 0) {
      return used;
    }
    for (size_t at = 0; at + sizeof(inotify_event) <= static_cast<size_t>(count);) {
      inotify_event event{};
      std::memcpy(&event, events.data() + at, sizeof(event));
      at += sizeof(event) + event.len;
      used.lost = used.lost || (event.mask & IN_Q_OVERFLOW) != 0;
      if (event.wd >= 0 && !std::ranges::contains(used.files, event.wd)) {
        used.files.push_back(event.wd);
      }
    }
  }
}

void BlockSignals() {
  sigset_t set;
  sigfillset(&set);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) {
    sigdelset(&set, fault);
  }
  pthread_sigmask(SIG_SETMASK, &set, nullptr);
}

}  // namespace gantry::os
