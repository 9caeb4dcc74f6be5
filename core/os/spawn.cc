// SPDX-License-Identifier: Apache-2.0
//
// The caller's part of a spawn; the child's is in `spawn_steps.cc`.
#include "core/os/spawn.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <sstream>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/mount/id_map.h>
#include <gantry/toolkit/process/pidfd.h>

#include "core/os/spawn_check.h"
#include "core/os/spawn_steps.h"

namespace gantry::os {

namespace {

/// The socket between caller and child.
struct Ends {
  UniqueFd callers;
  UniqueFd childs;
};

Result<Ends> MakeEnds() {
  // Messages arrive whole or not at all.
  GANTRY_TRY(auto pair, BlockingSocketPair(SOCK_SEQPACKET));
  Ends ends{.callers = std::move(pair.first), .childs = std::move(pair.second)};
  GANTRY_CHECK_OK(SetNonblocking(ends.callers.get(), true));
  return ends;
}

/// fork with a pidfd. 0 in the child, -1 with errno on failure.
pid_t Clone(SpawnSteps& steps, std::optional<int> cgroup_fd, int& pidfd) {
  clone_args args{};
  args.flags = CLONE_PIDFD;
  args.pidfd = reinterpret_cast<uintptr_t>(&pidfd);
  args.exit_signal = SIGCHLD;
  if (cgroup_fd) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<uint64_t>(*cgroup_fd);
  }
  const auto pid = static_cast<pid_t>(syscall(SYS_clone3, &args, sizeof(args)));
  // Linux before 5.7 knows no CLONE_INTO_CGROUP; seccomp filters of container
  // engines hide clone3.
  if (pid < 0 && (errno == ENOSYS || errno == EINVAL || errno == E2BIG)) {
    steps.EnterCgroupByWriting();
    return static_cast<pid_t>(
        syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, nullptr, &pidfd, nullptr, nullptr));
  }
  return pid;
}

/// Makes the child with all signals blocked, lest a handler of ours run in it.
pid_t CloneAndRun(SpawnSteps& steps, std::optional<int> cgroup_fd, const Ends& ends, int& pidfd) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = Clone(steps, cgroup_fd, pidfd);
  if (pid == 0) {
    steps.RunChild(ends.childs.get(), ends.callers.get());
  }
  const int saved = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = saved;
  return pid;
}

/// As the kernel takes it. Empty maps: all ids that this process has.
Result<std::string> MapText(const std::vector<IdMapping>& map, const char* own) {
  constexpr size_t kMaxMapBytes = 65536;
  std::string text = mount::IdMapText(map);
  if (map.empty()) {
    GANTRY_TRY(const std::string ranges, ReadFile(own, kMaxMapBytes));
    std::istringstream in(ranges);
    uint32_t inside = 0;
    uint32_t outside = 0;
    uint32_t length = 0;
    while (in >> inside >> outside >> length) {
      text += Format("{} {} {}\n", inside, inside, length);
    }
  }
  return text;
}

Result<PendingSpawn::Birth> PrepareBirth(const SpawnRequest& request, size_t release_step) {
  PendingSpawn::Birth birth;
  birth.due = true;
  birth.release_step = release_step;
  if ((request.new_namespaces & CLONE_NEWUSER) != 0) {
    GANTRY_TRY(birth.uid_map, MapText(request.uid_map, "/proc/self/uid_map"));
    GANTRY_TRY(birth.gid_map, MapText(request.gid_map, "/proc/self/gid_map"));
  }
  return birth;
}

/// 0 or the errno, and what failed as the label of the step at which the child waits.
int WriteMap(PendingSpawn& pending, const char* name, const std::string& text) {
  const Status written =
      text.empty() ? Status()
                   : WriteExisting(Format("/proc/{}/{}", pending.process.pid, name), text);
  if (written) {
    return 0;
  }
  pending.steps.at(pending.birth.release_step) =
      Format("write {} of process {}", name, pending.process.pid);
  return written.error().sys_errno != 0 ? written.error().sys_errno : EIO;
}

void Release(PendingSpawn& pending) {
  SpawnRelease release = WriteMap(pending, "uid_map", pending.birth.uid_map);
  if (release == 0) {
    release = WriteMap(pending, "gid_map", pending.birth.gid_map);
  }
  // Where the child is gone, its status says so.
  send(pending.status.get(), &release, sizeof(release), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/// Where it has ended.
void Collect(const UniqueFd& pidfd) {
  siginfo_t info{};
  waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pidfd.get()), &info, WEXITED | WNOHANG);
}

std::unexpected<Error> Lost(const PendingSpawn& pending) {
  Collect(pending.pidfd);
  return Fail(Code::kAborted, "spawn: process {} was killed on its way", pending.process.pid);
}

/// The second child is there: `pending` is about it from here on.
Status OnBirth(PendingSpawn& pending, pid_t pid, UniqueFd pidfd,
               const std::function<bool()>& may_live) {
  pending.birth.due = false;
  pending.birth.maker = std::exchange(pending.pidfd, std::move(pidfd));
  pending.process = {.pid = pid, .start_time = StartTimeOf({pid}).value_or(0)};
  // Only an unreaped process is sure to be the one that has this number.
  if (HasEnded(pending.pidfd.get())) {
    return Lost(pending);
  }
  if (may_live && !may_live()) {
    IgnoreError(SendSignal(pending.pidfd.get(), SIGKILL), "it has ended");
    return Fail(Code::kAborted, "spawn: process {} was given up at its birth", pid);
  }
  Release(pending);
  return {};
}

/// What the child says; nothing at its end. Errors: UNAVAILABLE: nothing yet.
Result<std::optional<SpawnReport>> ReadReport(PendingSpawn& pending, std::vector<UniqueFd>& fds) {
  // Asked first: what it said before its end is read then.
  const bool lost = pending.birth.due && HasEnded(pending.pidfd.get());
  SpawnReport report;
  const auto got =
      RecvWithFds(pending.status.get(), {reinterpret_cast<char*>(&report), sizeof(report)}, fds);
  if (!got && got.error().sys_errno != ECONNRESET) {
    return std::unexpected(got.error());
  }
  if (got && got->would_block && !lost) {
    return Fail(Code::kUnavailable, "spawn: process {} is on its way", pending.process.pid);
  }
  const bool said = got && got->bytes == sizeof(report);
  return said ? std::optional(report) : std::nullopt;
}

Error ErrorOf(const PendingSpawn& pending, const SpawnReport& report) {
  const auto step = static_cast<size_t>(report.step);
  Error error =
      ErrnoError(report.sys_errno, step < pending.steps.size() ? pending.steps[step] : "spawn");
  const bool maps = pending.birth.maker && step == pending.birth.release_step;
  if ((maps || pending.filter_step == step) && error.sys_errno == EINVAL) {
    // A map or a filter that the kernel refuses is the request's.
    error.code = Code::kInvalidArgument;
  }
  return error;
}

}  // namespace

Result<PendingSpawn> BeginSpawn(const SpawnRequest& request) {
  SpawnSteps steps(request);
  GANTRY_CHECK_OK(steps.Prepare());
  PendingSpawn pending;
  if (TakesSecond(request)) {
    GANTRY_TRY(pending.birth, PrepareBirth(request, steps.release_step()));
  }
  GANTRY_TRY(Ends ends, MakeEnds());
  int pidfd = -1;
  const pid_t pid = CloneAndRun(steps, request.cgroup_fd, ends, pidfd);
  if (pid < 0) {
    Error error = ErrnoError(errno, "clone");
    if (error.sys_errno == EAGAIN) {
      error.code = Code::kResourceExhausted;
    }
    return std::unexpected(std::move(error));
  }
  pending.pidfd.reset(pidfd);
  // Fails only where the caller ignores SIGCHLD; then the number must do.
  pending.process = {.pid = pid, .start_time = StartTimeOf({pid}).value_or(0)};
  pending.status = std::move(ends.callers);
  pending.steps = steps.TakeLabels();
  pending.filter_step = steps.filter_step();
  return pending;
}

Result<SpawnResult> FinishSpawn(PendingSpawn& pending, const std::function<bool()>& may_live) {
  std::vector<UniqueFd> fds;
  GANTRY_TRY(const std::optional<SpawnReport> report, ReadReport(pending, fds));
  if (!report && pending.birth.due) {
    return Lost(pending);
  }
  if (report && report->pid != 0 && !fds.empty() && pending.birth.due) {
    GANTRY_CHECK_OK(OnBirth(pending, report->pid, std::move(fds.front()), may_live));
    return Fail(Code::kUnavailable, "spawn: process {} is on its way", pending.process.pid);
  }
  if (pending.birth.maker) {
    Collect(pending.birth.maker);
  }
  if (!report) {
    return SpawnResult{.process = pending.process, .pidfd = std::move(pending.pidfd)};
  }
  // It is in _exit; this does not wait.
  siginfo_t info{};
  waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pending.pidfd.get()), &info, WEXITED);
  return std::unexpected(ErrorOf(pending, *report));
}

Result<SpawnResult> SpawnProcess(const SpawnRequest& request, std::chrono::milliseconds deadline) {
  GANTRY_TRY(PendingSpawn pending, BeginSpawn(request));
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        std::max(end - std::chrono::steady_clock::now(), std::chrono::steady_clock::duration(0)));
    pollfd poller{.fd = pending.status.get(), .events = POLLIN, .revents = 0};
    const int ready = poll(&poller, 1, static_cast<int>(left.count()));
    if (ready == 0) {
      break;
    }
    auto finished = ready > 0 ? FinishSpawn(pending) : Fail(Code::kUnavailable, "interrupted");
    if (finished || finished.error().code != Code::kUnavailable) {
      return finished;
    }
  }
  IgnoreError(SendSignal(pending.pidfd.get(), SIGKILL), "it may have just ended");
  if (pending.birth.maker) {
    Collect(pending.birth.maker);
  }
  return Fail(Code::kDeadlineExceeded, "spawn '{}': process {} did not reach its program in time",
              request.argv.front(), pending.process.pid);
}

}  // namespace gantry::os
