// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <string>
#include <string_view>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/pidfd.h>

namespace gantry {
namespace {

/// Source: Linux 6.9, include/uapi/linux/pidfd.h; older headers lack it.
constexpr unsigned kPidfdSignalProcessGroup = 1U << 2;

std::unexpected<Error> ProcessGone(int32_t pid) {
  return Fail(Code::kNotFound, "open process {}: it has ended", pid);
}

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

template <class Number>
Result<Number> StatNumber(HostPid pid, int field_number) {
  constexpr size_t kMaxStatBytes = 4096;
  auto line = ReadFile(Format("/proc/{}/stat", pid.value), kMaxStatBytes);
  if (!line) {
    // ESRCH where it ended between open and read.
    return line.error().code == Code::kNotFound ? ProcessGone(pid.value)
                                                : std::unexpected(std::move(line).error());
  }
  const std::string_view field = StatField(*line, field_number);
  Number number = 0;
  const auto [end, failed] = std::from_chars(field.data(), field.data() + field.size(), number);
  if (field.empty() || failed != std::errc() || end != field.data() + field.size()) {
    return Fail(Code::kInternal, "read '/proc/{}/stat': field {} is no number", pid.value,
                field_number);
  }
  return number;
}

}  // namespace

Result<uint64_t> StartTimeOf(HostPid pid) { return StatNumber<uint64_t>(pid, 22); }

Result<ProcessId> Identify(HostPid pid) {
  GANTRY_TRY(const uint64_t start_time, StartTimeOf(pid));
  return ProcessId{.pid = pid.value, .start_time = start_time};
}

Result<HostPid> ParentOf(HostPid pid) {
  GANTRY_TRY(const int32_t parent, StatNumber<int32_t>(pid, 4));
  return HostPid{parent};
}

Result<UniqueFd> OpenPidfd(HostPid pid) { return OpenPidfd(ProcessId{.pid = pid.value}); }

Result<UniqueFd> OpenPidfd(const ProcessId& process) {
  UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0U)));
  if (!pidfd) {
    return errno == ESRCH ? ProcessGone(process.pid)
                          : FailErrno(errno, "open process {}", process.pid);
  }
  // The number cannot be reused while the descriptor is checked: if the process
  // behind it ends now, signals through it just fail.
  if (process.start_time != 0) {
    GANTRY_TRY(const uint64_t start_time, StartTimeOf(HostPid{process.pid}));
    if (start_time != process.start_time) {
      return ProcessGone(process.pid);
    }
  }
  return pidfd;
}

Result<UniqueFd> OpenEndOf(const ProcessId& process) {
  auto pidfd = OpenPidfd(process);
  if (pidfd || pidfd.error().code != Code::kNotFound) {
    return pidfd;
  }
  UniqueFd over(eventfd(1, EFD_CLOEXEC));
  if (!over) {
    return FailErrno(errno, "make a descriptor for the end of process {}", process.pid);
  }
  return over;
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

void KillProcess(const UniqueFd& pidfd) {
  IgnoreError(SendSignal(pidfd.get(), SIGKILL), "it fails only for a process that has ended");
}

void KillGroup(const UniqueFd& pidfd) {
  // An older kernel refuses the flag; then the process itself has to do.
  if (syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, kPidfdSignalProcessGroup) !=
      0) {
    KillProcess(pidfd);
  }
}

bool HasEnded(int pidfd) {
  pollfd poller{.fd = pidfd, .events = POLLIN, .revents = 0};
  return poll(&poller, 1, 0) == 1;
}

}  // namespace gantry
