// SPDX-License-Identifier: Apache-2.0
#include "core/os/spawn_steps.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <gantry/format.h>

#include "core/os/spawn_check.h"

namespace gantry::os {

namespace {

/// Writes a short text into a file that exists.
int WriteInto(int dir, const char* path, const std::string& text) {
  const int fd = openat(dir, path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) {
    return errno;
  }
  const int failed = ErrnoOf(write(fd, text.data(), text.size()));
  close(fd);
  return failed;
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& text : strings) {
    // execve takes pointers to mutable text and does not write to it.
    pointers.push_back(const_cast<char*>(text.c_str()));
  }
  pointers.push_back(nullptr);
  return pointers;
}

/// Also of one that may not be raised so far: then up to the hard limit that there is.
int SetLimit(const SpawnRequest::Limit& limit, rlimit value) {
  const auto set = [&limit, &value] {
    return ErrnoOf(syscall(SYS_prlimit64, 0, limit.resource, &value, nullptr));
  };
  const int failed = set();
  if (failed == 0 || !limit.as_far_as_allowed) {
    return failed;
  }
  rlimit now{};
  if (syscall(SYS_prlimit64, 0, limit.resource, nullptr, &now) == 0) {
    value.rlim_max = std::min(value.rlim_max, now.rlim_max);
    value.rlim_cur = std::min(value.rlim_cur, value.rlim_max);
    set();
  }
  return 0;
}

/// Fewer open files than now: only after the descriptors are in place.
bool IsLate(const SpawnRequest::Limit& limit, const rlimit& now) {
  return limit.resource == RLIMIT_NOFILE && limit.value.rlim_cur < now.rlim_cur;
}

}  // namespace

Status SpawnSteps::PrepareDescriptors() {
  descriptors_ = request_.descriptors;
  for (int target = 0; target <= 2; ++target) {
    if (std::ranges::contains(descriptors_, target, &SpawnRequest::Descriptor::target)) {
      continue;
    }
    if (!null_) {
      null_.reset(open("/dev/null", O_RDWR | O_CLOEXEC));
    }
    if (!null_) {
      return FailErrno(errno, "open '/dev/null'");
    }
    descriptors_.push_back({.fd = null_.get(), .target = target});
  }
  for (const auto& descriptor : descriptors_) {
    above_ = std::max(above_, descriptor.target + 1);
  }
  moved_.resize(descriptors_.size());
  return {};
}

/// All that the steps use. The child adds `status_`.
void SpawnSteps::NameDescriptors() {
  const auto name = [this](int fd) {
    if (fd > STDERR_FILENO) {
      named_.push_back(fd);
    }
  };
  std::ranges::for_each(descriptors_, name, &SpawnRequest::Descriptor::fd);
  std::ranges::for_each(request_.namespaces, name, &SpawnRequest::Namespace::fd);
  for (const auto& fd : {request_.program_fd, request_.cgroup_fd, request_.controlling_tty_fd}) {
    name(fd.value_or(-1));
  }
  name(parent_.get());
  // The place of `status_`: the child may not ask for memory.
  named_.push_back(-1);
}

/// The caller's other descriptors are copied with the process, and whoever may look into it while
/// it is in a namespace or cgroup of his would have them.
int SpawnSteps::CloseOthers() {
  *std::ranges::find(named_, -1) = status_;
  std::ranges::sort(named_);
  auto from = static_cast<unsigned>(STDERR_FILENO) + 1;
  for (const int fd : named_) {
    const auto next = static_cast<unsigned>(fd);
    if (next > from) {
      // Linux 5.9 can do it. On an earlier one they are open until exec, as all are CLOEXEC.
      syscall(SYS_close_range, from, next - 1, 0U);
    }
    from = std::max(from, next + 1);
  }
  syscall(SYS_close_range, from, ~0U, 0U);
  return 0;
}

Status SpawnSteps::Prepare() {
  GANTRY_CHECK_OK(CheckSpawn(request_));
  GANTRY_CHECK_OK(PrepareDescriptors());
  argv_ = Pointers(request_.argv);
  env_ = Pointers(request_.env);
  GANTRY_CHECK_OK(OpenParent());
  NameDescriptors();
  Add("close the caller's descriptors", [this] { return CloseOthers(); });
  AddCgroups();
  AddOomScore();
  AddLimits(false);
  AddParent();
  AddHiding();
  AddJoins();
  AddBirth();
  AddSession();
  AddDescriptors();
  AddLimits(true);
  AddMounts();
  AddOwnRoot();
  AddIdentity();
  AddCapabilities();
  AddPrivileges();
  AddFilter();
  AddExec();
  return {};
}

void SpawnSteps::AddCgroups() {
  if (request_.cgroup_fd) {
    Add("enter the cgroup", [this] {
      return cgroup_by_writing_ ? WriteInto(*request_.cgroup_fd, "cgroup.procs", self_) : 0;
    });
  }
  for (const std::string& path : request_.cgroup_tasks) {
    Add(Format("write '{}'", path),
        [this, &path] { return WriteInto(AT_FDCWD, path.c_str(), self_); });
  }
}

void SpawnSteps::AddOomScore() {
  if (request_.oom_score_adj) {
    oom_score_adj_ = std::to_string(*request_.oom_score_adj);
    Add(Format("set oom_score_adj '{}'", oom_score_adj_),
        [this] { return WriteInto(AT_FDCWD, "/proc/self/oom_score_adj", oom_score_adj_); });
  }
}

void SpawnSteps::AddSession() {
  if (request_.new_session) {
    Add("start a session", [] { return ErrnoOf(setsid()); });
  }
  if (request_.controlling_tty_fd) {
    Add("set the controlling terminal",
        [fd = *request_.controlling_tty_fd] { return ErrnoOf(ioctl(fd, TIOCSCTTY, 0)); });
  }
}

/// All limits go first, before a user namespace takes the right to raise them and takes
/// them as its own; of a late one then what it needs that right for.
void SpawnSteps::AddLimits(bool late) {
  rlimit now{};
  if (getrlimit(RLIMIT_NOFILE, &now) < 0) {
    now = {};
  }
  for (const auto& limit : request_.limits) {
    rlimit value = limit.value;
    if (IsLate(limit, now) && !late) {
      value = {.rlim_cur = now.rlim_cur, .rlim_max = std::max(value.rlim_max, now.rlim_cur)};
    }
    if (!late || IsLate(limit, now)) {
      Add(Format("set limit {}", limit.resource),
          [&limit, value] { return SetLimit(limit, value); });
    }
  }
}

Status SpawnSteps::OpenParent() {
  if (!request_.parent_death_signal) {
    return {};
  }
  parent_.reset(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0U)));
  if (!parent_) {
    return FailErrno(errno, "spawn '{}': open the parent", ProgramOf(request_));
  }
  return {};
}

void SpawnSteps::AddParent() {
  if (parent_) {
    Add("keep the parent's descriptor", [this] {
      parent_number_ = fcntl(parent_.get(), F_DUPFD_CLOEXEC, above_);
      return ErrnoOf(parent_number_);
    });
  }
}

/// Up to exec, which ends it, its memory is a copy of the caller's. Not earlier: the files below
/// /proc/self are root's from then on. Source: proc(5), prctl(2).
void SpawnSteps::AddHiding() {
  Add("hide the memory", [] { return ErrnoOf(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)); });
}

void SpawnSteps::AddDescriptors() {
  // First all sources above all targets, so that no target overwrites a source.
  for (size_t i = 0; i < descriptors_.size(); ++i) {
    Add(Format("pass descriptor {}", descriptors_[i].fd), [this, i] {
      moved_[i] = fcntl(descriptors_[i].fd, F_DUPFD_CLOEXEC, above_);
      return ErrnoOf(moved_[i]);
    });
  }
  Add("close other descriptors", [] {
    // A second line of defence: all of ours are CLOEXEC. Linux 5.11 can do it.
    syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
    return 0;
  });
  for (size_t i = 0; i < descriptors_.size(); ++i) {
    Add(Format("pass a descriptor as {}", descriptors_[i].target),
        [this, i] { return ErrnoOf(dup2(moved_[i], descriptors_[i].target)); });
  }
}

void SpawnSteps::AddIdentity() {
  if (!request_.cwd.empty()) {
    Add(Format("enter directory '{}'", request_.cwd),
        [this] { return ErrnoOf(chdir(request_.cwd.c_str())); });
  }
  if (request_.umask) {
    Add(Format("set umask {:o}", *request_.umask), [mask = *request_.umask] {
      umask(mask);
      return 0;
    });
  }
  // While it still may.
  AddBounding();
  // By number: the C library's functions would reach for other threads.
  if (request_.gid) {
    Add("drop the groups", [] { return ErrnoOf(syscall(SYS_setgroups, 0, nullptr)); });
    Add(Format("set gid {}", *request_.gid),
        [gid = *request_.gid] { return ErrnoOf(syscall(SYS_setresgid, gid, gid, gid)); });
  }
  if (request_.uid) {
    Add(Format("set uid {}", *request_.uid),
        [uid = *request_.uid] { return ErrnoOf(syscall(SYS_setresuid, uid, uid, uid)); });
  }
}

void SpawnSteps::AddPrivileges() {
  // After the change of user, which resets it. Source: prctl(2).
  if (request_.parent_death_signal) {
    Add("set the parent's death signal",
        [this, signal = *request_.parent_death_signal] { return SetDeathSignal(signal); });
  }
  if (request_.no_new_privs) {
    Add("set no_new_privs", [] { return ErrnoOf(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)); });
  }
}

int SpawnSteps::SetDeathSignal(int signal) const {
  const int failed = ErrnoOf(prctl(PR_SET_PDEATHSIG, signal));
  // It may have ended before.
  pollfd parent{.fd = parent_number_, .events = POLLIN, .revents = 0};
  return failed == 0 && poll(&parent, 1, 0) == 1 ? ESRCH : failed;
}

void SpawnSteps::AddExec() {
  // What the program needs beside itself, its linker, is not in an empty root.
  const char* const in = !request_.empty_root          ? ""
                         : request_.root_paths.empty() ? " in an empty root, linked statically"
                                                       : " in a root of its own";
  Add(Format("exec '{}'{}", ProgramOf(request_), in), [this, path = ProgramOf(request_).c_str()] {
    if (program_number_ >= 0) {
      // It returns for scripts, whose interpreter would find the descriptor closed.
      syscall(SYS_execveat, program_number_, "", argv_.data(), env_.data(), AT_EMPTY_PATH);
    }
    if (request_.program_fd) {
      return errno;
    }
    return ErrnoOf(execve(path, argv_.data(), env_.data()));
  });
}

void SpawnSteps::RunChild(int status, int callers_end) {
  // What is ignored stays so over exec; what has a handler must not run it.
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) {
    sigaction(signal, &action, nullptr);
  }
  if (request_.ignore_sigpipe) {
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, nullptr);
  }
  // Else a child that waits would not learn that the caller is gone.
  close(callers_end);
  const int moved = fcntl(status, F_DUPFD_CLOEXEC, above_);
  status_ = moved >= 0 ? moved : status;
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (const int failed = steps_[i](); failed != 0) {
      const SpawnReport report{.step = static_cast<int32_t>(i), .sys_errno = failed};
      [[maybe_unused]] const ssize_t sent = send(status_, &report, sizeof(report), MSG_NOSIGNAL);
      break;
    }
  }
  _exit(127);
}

}  // namespace gantry::os
