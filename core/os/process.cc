// SPDX-License-Identifier: Apache-2.0
#include "core/os/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <string>
#include <string_view>

#include <gantry/format.h>
#include <gantry/toolkit/process/pidfd.h>

namespace gantry::os {

Result<std::optional<ReapedProcess>> ReapNext() {
  // Looked at first, since the start time goes with the reaping.
  siginfo_t info{};
  if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0) {
    if (errno == ECHILD) {
      return std::nullopt;
    }
    return FailErrno(errno, "wait for a child");
  }
  if (info.si_pid == 0) {
    return std::nullopt;
  }
  ReapedProcess reaped;
  reaped.process = {.pid = info.si_pid, .start_time = StartTimeOf({info.si_pid}).value_or(0)};
  if (wait4(info.si_pid, &reaped.wait_status, WNOHANG, &reaped.usage) != info.si_pid) {
    return FailErrno(errno, "reap process {}", info.si_pid);
  }
  return reaped;
}

LeftChildren ReapLeftChildren() {
  LeftChildren left;
  while (true) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | __WNOTHREAD | __WALL) < 0) {
      return left;
    }
    if (info.si_pid == 0) {
      left.running = true;
      return left;
    }
    left.reaped.push_back(info.si_pid);
  }
}

Status BecomeSubreaper() {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) {
    return FailErrno(errno, "become a subreaper");
  }
  return {};
}

Result<UniqueFd> OpenSignalFd(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) {
    sigaddset(&set, signal);
  }
  if (const int failed = pthread_sigmask(SIG_BLOCK, &set, nullptr); failed != 0) {
    return FailErrno(failed, "block signals");
  }
  UniqueFd fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) {
    return FailErrno(errno, "open a signal descriptor");
  }
  return fd;
}

void IgnoreSigpipe() {
  struct sigaction action{};
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, nullptr);
}

}  // namespace gantry::os
