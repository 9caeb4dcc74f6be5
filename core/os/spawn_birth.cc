// SPDX-License-Identifier: Apache-2.0
//
// SpawnSteps: the namespaces that the child joins and makes, and the second child, which is born in
// those that are made, and in the pid namespace that is joined.
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <gantry/format.h>

#include "core/os/spawn_check.h"
#include "core/os/spawn_steps.h"

namespace gantry::os {
namespace {

/// A message with one descriptor.
int SendWithFd(int socket, const SpawnReport& report, int fd) {
  iovec part{.iov_base = const_cast<SpawnReport*>(&report), .iov_len = sizeof(report)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  return ErrnoOf(sendmsg(socket, &message, MSG_NOSIGNAL));
}

/// Until the process of a pidfd has ended, reaped or not.
void AwaitEnd(int pidfd) {
  pollfd poller{.fd = pidfd, .events = POLLIN, .revents = 0};
  while (poll(&poller, 1, -1) < 0 && errno == EINTR) {
  }
}

/// A number that makes the kernel give the child a table of 512 descriptors, which the program
/// keeps. Else one with threads pays for each growth of its table: the kernel waits until no
/// processor looks at the old one, 4 to 20 ms where runsc 2026-09 moves a descriptor to 253.
/// Source: Linux 6.12, fs/file.c, expand_fdtable.
constexpr int kRoomyTable = 256;

}  // namespace

bool SpawnSteps::Joins(int type) const {
  return std::ranges::any_of(request_.namespaces, [type](const SpawnRequest::Namespace& space) {
    return (space.type & type) != 0;
  });
}

void SpawnSteps::AddProgram() {
  Add(Format("open '{}'", ProgramOf(request_)), [this, path = ProgramOf(request_).c_str()] {
    const int fd = request_.program_fd ? *request_.program_fd : open(path, O_PATH | O_CLOEXEC);
    if (fd < 0) {
      return ErrnoOf(fd);
    }
    program_number_ = fcntl(fd, F_DUPFD_CLOEXEC, std::max(above_, kRoomyTable));
    if (program_number_ < 0 && errno == EINVAL) {
      // So many files it may not have.
      program_number_ = fcntl(fd, F_DUPFD_CLOEXEC, above_);
    }
    return ErrnoOf(program_number_);
  });
}

void SpawnSteps::AddJoins() {
  const bool makes_user = (request_.new_namespaces & CLONE_NEWUSER) != 0;
  if (request_.program_fd || Joins(CLONE_NEWUSER)) {
    AddProgram();
  }
  for (const auto& space : request_.namespaces) {
    Add(Format("join namespace {:#x}", space.type),
        [&space] { return ErrnoOf(setns(space.fd, space.type)); });
  }
  // A filter may bar the way to it, and an empty root has none.
  const bool later = makes_user || request_.empty_root || !request_.seccomp.empty();
  if (!request_.program_fd && !Joins(CLONE_NEWUSER) && later) {
    AddProgram();
  }
}

void SpawnSteps::AddBirth() {
  if (TakesSecond(request_)) {
    // Where the first process of a pid namespace has ended, the answer is ENOMEM.
    // Source: Linux 6.12, kernel/pid.c, alloc_pid.
    Add(request_.new_namespaces != 0 ? Format("make namespaces {:#x}", request_.new_namespaces)
                                     : "be born in the pid namespace",
        [this] { return MakeSecond(); });
    release_step_ = steps_.size();
    Add("be released", [this] { return AwaitRelease(); });
  }
}

/// Returns in the second child, and where there is none.
int SpawnSteps::MakeSecond() {
  const long self = syscall(SYS_pidfd_open, getpid(), 0U);
  if (self < 0) {
    return errno;
  }
  // clone3 would give no more, and is not everywhere.
  const auto flags =
      static_cast<unsigned long>(request_.new_namespaces | CLONE_PARENT | CLONE_PIDFD | SIGCHLD);
  int pidfd = -1;
  const long pid = syscall(SYS_clone, flags, nullptr, &pidfd, nullptr, nullptr);
  if (pid < 0) {
    return errno;
  }
  if (pid == 0) {
    // What the second one reports tells the caller that the first can be reaped.
    AwaitEnd(static_cast<int>(self));
    close(static_cast<int>(self));
    return 0;
  }
  const int failed = SendWithFd(status_, {.pid = static_cast<pid_t>(pid)}, pidfd);
  if (failed == 0) {
    _exit(0);
  }
  syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, nullptr, 0U);
  return failed;
}

int SpawnSteps::AwaitRelease() const {
  SpawnRelease release = 0;
  return read(status_, &release, sizeof(release)) == sizeof(release) ? release : ECANCELED;
}

}  // namespace gantry::os
