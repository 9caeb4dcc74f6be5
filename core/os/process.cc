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

#include "core/os/fs.h"

namespace gantry::os {

namespace {

/// Field `number` of a line of /proc/PID/stat, counted from 1 as in proc(5);
/// fields 1 and 2 cannot be asked for. Field 2 is the program's name in
/// parentheses and may hold blanks and parentheses, so the count starts behind
/// the last one.
std::string_view StatField(std::string_view line, int number) {
  const size_t name_end = line.rfind(") ");
  if (name_end == std::string_view::npos) {
    return {};
  }
  line.remove_prefix(name_end + 2);
  for (int field = 3; field < number; ++field) {
    const size_t blank = line.find(' ');
    if (blank == std::string_view::npos) {
      return {};
    }
    line.remove_prefix(blank + 1);
  }
  return line.substr(0, line.find_first_of(" \n"));
}

std::unexpected<Error> Gone(pid_t pid) {
  return Fail(Code::kNotFound, "open process {}: it has ended", pid);
}

}  // namespace

Result<uint64_t> StartTime(pid_t pid) {
  constexpr size_t kMaxStatBytes = 4096;
  constexpr int kStartTimeField = 22;
  auto line = ReadFile(Format("/proc/{}/stat", pid), kMaxStatBytes);
  if (!line) {
    // ESRCH where it ended between open and read.
    return line.error().code == Code::kNotFound ? Gone(pid)
                                                : std::unexpected(std::move(line).error());
  }
  const std::string_view field = StatField(*line, kStartTimeField);
  uint64_t ticks = 0;
  const auto [end, failed] = std::from_chars(field.data(), field.data() + field.size(), ticks);
  if (field.empty() || failed != std::errc() || end != field.data() + field.size()) {
    return Fail(Code::kInternal, "read '/proc/{}/stat': no start time", pid);
  }
  return ticks;
}

Result<ProcessId> Identify(pid_t pid) {
  GANTRY_TRY(const uint64_t start_time, StartTime(pid));
  return ProcessId{.pid = pid, .start_time = start_time};
}

Result<UniqueFd> OpenPidfd(ProcessId process) {
  UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0U)));
  if (!pidfd) {
    return errno == ESRCH ? Gone(process.pid) : FailErrno(errno, "open process {}", process.pid);
  }
  // The number cannot be reused while the descriptor is checked: if the process
  // behind it ends now, signals through it just fail.
  if (process.start_time != 0) {
    GANTRY_TRY(const uint64_t start_time, StartTime(process.pid));
    if (start_time != process.start_time) {
      return Gone(process.pid);
    }
  }
  return pidfd;
}

Status SendSignal(int pidfd, int signal) {
  if (syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0U) == 0) {
    return {};
  }
  if (errno == ESRCH) {
    return Fail(Code::kNotFound, "send signal {}: process already finished", signal);
  }
  if (errno == EINVAL) {
    return Fail(Code::kInvalidArgument, "send signal {}: no such signal", signal);
  }
  return FailErrno(errno, "send signal {}", signal);
}

bool HasEnded(int pidfd) {
  pollfd poller{.fd = pidfd, .events = POLLIN, .revents = 0};
  return poll(&poller, 1, 0) == 1;
}

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
  reaped.process = {.pid = info.si_pid, .start_time = StartTime(info.si_pid).value_or(0)};
  if (wait4(info.si_pid, &reaped.wait_status, WNOHANG, &reaped.usage) != info.si_pid) {
    return FailErrno(errno, "reap process {}", info.si_pid);
  }
  return reaped;
}

Strays ReapStrays() {
  Strays strays;
  while (true) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | __WNOTHREAD | __WALL) < 0) {
      return strays;
    }
    if (info.si_pid == 0) {
      strays.running = true;
      return strays;
    }
    strays.reaped.push_back(info.si_pid);
  }
}

uint32_t ExitCode(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    return 128U + static_cast<uint32_t>(WTERMSIG(wait_status));
  }
  return static_cast<uint32_t>(WEXITSTATUS(wait_status));
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
