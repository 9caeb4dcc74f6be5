// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>

#include <gantry/files.h>
#include <gantry/format.h>
#include <gantry/number.h>
#include <gantry/pidfd.h>

namespace gantry {
namespace {

/// Source: Linux 6.9, include/uapi/linux/pidfd.h; older headers lack it.
constexpr unsigned kPidfdSignalProcessGroup = 1U << 2;

}  // namespace

Result<uint64_t> StartTimeOf(HostPid pid) {
  GANTRY_TRY(const std::string stat, ReadFile(Format("/proc/{}/stat", pid.value), 4096));
  // The second field is the program's name in brackets, with any character in
  // it; the fields after it are counted from 3.
  size_t at = stat.rfind(')');
  for (int field = 2; field < 22 && at != std::string::npos; ++field) {
    at = stat.find(' ', at + 1);
  }
  if (at == std::string::npos) {
    return Fail(Code::kInternal, "read '/proc/{}/stat': too short", pid.value);
  }
  const size_t end = stat.find(' ', at + 1);
  GANTRY_TRY(const int64_t ticks, ParseNumber(std::string_view(stat).substr(at + 1, end - at - 1)));
  return static_cast<uint64_t>(ticks);
}

Result<UniqueFd> OpenPidfd(HostPid pid) {
  UniqueFd fd(static_cast<int>(syscall(SYS_pidfd_open, pid.value, 0)));
  if (!fd) {
    return FailErrno(errno, "open process '{}'", pid.value);
  }
  return fd;
}

void SignalProcess(const UniqueFd& pidfd, int signal) {
  // It fails only for a process that has ended.
  syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0);
}

void KillProcess(const UniqueFd& pidfd) { SignalProcess(pidfd, SIGKILL); }

void KillGroup(const UniqueFd& pidfd) {
  // An older kernel refuses the flag; then the process itself has to do.
  if (syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, kPidfdSignalProcessGroup) !=
      0) {
    KillProcess(pidfd);
  }
}

}  // namespace gantry
