// SPDX-License-Identifier: Apache-2.0
//
// The child is made as fork makes it, with a copy of the caller's memory, and
// not as vfork does: nothing that it does can harm the caller, and the keeper,
// which spawns, is so small that the copy costs little. Another thread of the
// caller may have held any lock at that moment, so between clone and exec there
// are only system calls: all that needs memory is prepared before, as a list
// of steps, and a failed step is reported by its number through a pipe that
// exec closes.
#include "core/os/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <utility>

#include <gantry/format.h>

#include "core/os/process.h"

namespace gantry::os {

namespace {

/// One thing that the child does: 0 or the errno. System calls only.
using StepFunction = std::move_only_function<int()>;

/// What the child writes when a step fails.
struct Failure {
  int step;
  int sys_errno;
};

int ErrnoOf(long result) { return result < 0 ? errno : 0; }

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

/// The child's steps and what they use.
class Plan {
 public:
  explicit Plan(const SpawnRequest& request) : request_(request) {}

  Status Prepare();
  /// The child's part, from clone on.
  [[noreturn]] void RunChild(int status);

  std::vector<std::string> TakeLabels() { return std::move(labels_); }

  /// For a kernel that cannot make a process in a cgroup: the child moves.
  void EnterCgroupByWriting() { cgroup_by_writing_ = true; }

 private:
  void Add(std::string label, StepFunction function) {
    labels_.push_back(std::move(label));
    steps_.push_back(std::move(function));
  }

  Status Check() const;
  Status PrepareDescriptors();
  void AddCgroups();
  void AddSession();
  void AddLimits(bool late);
  Status AddProgram();
  void AddNamespaces();
  void AddDescriptors();
  void AddIdentity();
  void AddExec();

  bool IsLate(const SpawnRequest::Limit& limit) const;
  const std::string& Executable() const;

  const SpawnRequest& request_;
  std::vector<std::string> labels_;
  std::vector<StepFunction> steps_;
  std::vector<SpawnRequest::Descriptor> descriptors_;
  /// The descriptors' numbers above all targets, while they are put in place.
  std::vector<int> moved_;
  /// The first number above all targets.
  int above_ = 3;
  UniqueFd null_;
  /// Opened before a user namespace is joined, in which the way to it may be barred.
  UniqueFd program_;
  int program_number_ = -1;
  std::vector<char*> argv_;
  std::vector<char*> env_;
  std::string oom_score_adj_;
  std::string self_ = "0";
  bool cgroup_by_writing_ = false;
};

const std::string& Plan::Executable() const {
  return request_.executable.empty() ? request_.argv.front() : request_.executable;
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

Status Plan::Check() const {
  if (request_.argv.empty()) {
    return Fail(Code::kInvalidArgument, "spawn: no arguments");
  }
  if (!Executable().contains('/')) {
    return Fail(Code::kInvalidArgument, "spawn '{}': not a path", Executable());
  }
  if (request_.controlling_tty_fd && !request_.new_session) {
    return Fail(Code::kInvalidArgument, "spawn '{}': a terminal needs a session", Executable());
  }
  for (const auto& space : request_.namespaces) {
    if (space.type == CLONE_NEWPID) {
      return Fail(Code::kInvalidArgument, "spawn '{}': cannot join a pid namespace", Executable());
    }
  }
  std::vector<int> targets;
  for (const auto& descriptor : request_.descriptors) {
    if (descriptor.target < 0 || std::ranges::contains(targets, descriptor.target)) {
      return Fail(Code::kInvalidArgument, "spawn '{}': bad or repeated descriptor number {}",
                  Executable(), descriptor.target);
    }
    targets.push_back(descriptor.target);
  }
  return {};
}

Status Plan::PrepareDescriptors() {
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

Status Plan::Prepare() {
  GANTRY_CHECK_OK(Check());
  GANTRY_CHECK_OK(PrepareDescriptors());
  argv_ = Pointers(request_.argv);
  env_ = Pointers(request_.env);
  AddCgroups();
  AddSession();
  AddLimits(false);
  GANTRY_CHECK_OK(AddProgram());
  AddNamespaces();
  AddDescriptors();
  AddLimits(true);
  AddIdentity();
  AddExec();
  return {};
}

void Plan::AddCgroups() {
  if (request_.cgroup_fd) {
    Add("enter the cgroup", [this] {
      return cgroup_by_writing_ ? WriteInto(*request_.cgroup_fd, "cgroup.procs", self_) : 0;
    });
  }
  for (const std::string& path : request_.cgroup_procs) {
    Add(Format("write '{}'", path),
        [this, &path] { return WriteInto(AT_FDCWD, path.c_str(), self_); });
  }
}

void Plan::AddSession() {
  if (request_.new_session) {
    Add("start a session", [] { return ErrnoOf(setsid()); });
  }
  if (request_.controlling_tty_fd) {
    Add("set the controlling terminal",
        [fd = *request_.controlling_tty_fd] { return ErrnoOf(ioctl(fd, TIOCSCTTY, 0)); });
  }
  if (request_.oom_score_adj) {
    oom_score_adj_ = std::to_string(*request_.oom_score_adj);
    Add(Format("set oom_score_adj '{}'", oom_score_adj_),
        [this] { return WriteInto(AT_FDCWD, "/proc/self/oom_score_adj", oom_score_adj_); });
  }
}

/// Fewer open files than now: only after the descriptors are in place. All
/// other limits go first, before a user namespace takes the right to set them.
bool Plan::IsLate(const SpawnRequest::Limit& limit) const {
  rlimit now{};
  return limit.resource == RLIMIT_NOFILE && getrlimit(RLIMIT_NOFILE, &now) == 0 &&
         limit.value.rlim_cur < now.rlim_cur;
}

void Plan::AddLimits(bool late) {
  for (const auto& limit : request_.limits) {
    if (IsLate(limit) == late) {
      Add(Format("set limit {}", limit.resource), [&limit] {
        return ErrnoOf(syscall(SYS_prlimit64, 0, limit.resource, &limit.value, nullptr));
      });
    }
  }
}

Status Plan::AddProgram() {
  const auto is_user = [](const auto& space) { return space.type == CLONE_NEWUSER; };
  if (std::ranges::none_of(request_.namespaces, is_user)) {
    return {};
  }
  program_.reset(open(Executable().c_str(), O_PATH | O_CLOEXEC));
  if (!program_) {
    return FailErrno(errno, "spawn '{}': open it", Executable());
  }
  Add("keep the program's descriptor", [this] {
    program_number_ = fcntl(program_.get(), F_DUPFD_CLOEXEC, above_);
    return ErrnoOf(program_number_);
  });
  return {};
}

void Plan::AddNamespaces() {
  for (const auto& space : request_.namespaces) {
    Add(Format("join namespace {:#x}", space.type),
        [&space] { return ErrnoOf(setns(space.fd, space.type)); });
  }
}

void Plan::AddDescriptors() {
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

void Plan::AddIdentity() {
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
  // After the change of user, which resets it. Source: prctl(2).
  if (request_.parent_death_signal) {
    Add("set the parent's death signal",
        [signal = *request_.parent_death_signal, parent = getpid()] {
          const int failed = ErrnoOf(prctl(PR_SET_PDEATHSIG, signal));
          return failed == 0 && getppid() != parent ? ESRCH : failed;
        });
  }
  if (request_.no_new_privs) {
    Add("set no_new_privs", [] { return ErrnoOf(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)); });
  }
}

void Plan::AddExec() {
  Add(Format("exec '{}'", Executable()), [this, path = Executable().c_str()] {
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, nullptr);
    if (program_number_ >= 0) {
      // It returns for scripts, whose interpreter would find the descriptor closed.
      syscall(SYS_execveat, program_number_, "", argv_.data(), env_.data(), AT_EMPTY_PATH);
    }
    return ErrnoOf(execve(path, argv_.data(), env_.data()));
  });
}

void Plan::RunChild(int status) {
  // What is ignored stays so over exec; what has a handler must not run it.
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) {
    sigaction(signal, &action, nullptr);
  }
  if (const int moved = fcntl(status, F_DUPFD_CLOEXEC, above_); moved >= 0) {
    status = moved;
  }
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (const int failed = steps_[i](); failed != 0) {
      const Failure failure{.step = static_cast<int>(i), .sys_errno = failed};
      [[maybe_unused]] const ssize_t written = write(status, &failure, sizeof(failure));
      break;
    }
  }
  _exit(127);
}

/// fork with a pidfd. 0 in the child, -1 with errno on failure.
pid_t Clone(Plan& plan, std::optional<int> cgroup_fd, int& pidfd) {
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
    plan.EnterCgroupByWriting();
    return static_cast<pid_t>(
        syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, nullptr, &pidfd, nullptr, nullptr));
  }
  return pid;
}

/// Makes the child with all signals blocked, lest a handler of ours run in it.
pid_t CloneAndRun(Plan& plan, std::optional<int> cgroup_fd, int status, int& pidfd) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = Clone(plan, cgroup_fd, pidfd);
  if (pid == 0) {
    plan.RunChild(status);
  }
  const int saved = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = saved;
  return pid;
}

}  // namespace

Result<PendingSpawn> BeginSpawn(const SpawnRequest& request) {
  Plan plan(request);
  GANTRY_CHECK_OK(plan.Prepare());
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) {
    return FailErrno(errno, "spawn: make a pipe");
  }
  UniqueFd status(ends[0]);
  const UniqueFd childs_end(ends[1]);
  int pidfd = -1;
  const pid_t pid = CloneAndRun(plan, request.cgroup_fd, childs_end.get(), pidfd);
  if (pid < 0) {
    Error error = ErrnoError(errno, "clone");
    if (error.sys_errno == EAGAIN) {
      error.code = Code::kResourceExhausted;
    }
    return std::unexpected(std::move(error));
  }
  // Fails only where the caller ignores SIGCHLD; then the number must do.
  return PendingSpawn{.process = {.pid = pid, .start_time = StartTime(pid).value_or(0)},
                      .pidfd = UniqueFd(pidfd),
                      .status = std::move(status),
                      .steps = plan.TakeLabels()};
}

Result<SpawnResult> FinishSpawn(PendingSpawn& pending) {
  Failure failure{};
  ssize_t got = 0;
  do {
    got = read(pending.status.get(), &failure, sizeof(failure));
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    Error error = ErrnoError(errno, Format("wait for process {}", pending.process.pid));
    error.code = error.sys_errno == EAGAIN ? Code::kUnavailable : error.code;
    return std::unexpected(std::move(error));
  }
  if (got < static_cast<ssize_t>(sizeof(failure))) {
    return SpawnResult{.process = pending.process, .pidfd = std::move(pending.pidfd)};
  }
  // It is in _exit; this does not wait.
  siginfo_t info{};
  waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pending.pidfd.get()), &info, WEXITED);
  const auto step = static_cast<size_t>(failure.step);
  return std::unexpected(
      ErrnoError(failure.sys_errno, step < pending.steps.size() ? pending.steps[step] : "spawn"));
}

Result<SpawnResult> SpawnProcess(const SpawnRequest& request, std::chrono::milliseconds deadline) {
  GANTRY_TRY(PendingSpawn pending, BeginSpawn(request));
  const auto end = std::chrono::steady_clock::now() + deadline;
  pollfd poller{.fd = pending.status.get(), .events = POLLIN, .revents = 0};
  int ready = 0;
  do {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        std::max(end - std::chrono::steady_clock::now(), std::chrono::steady_clock::duration(0)));
    ready = poll(&poller, 1, static_cast<int>(left.count()));
  } while (ready < 0 && errno == EINTR);
  if (ready > 0) {
    return FinishSpawn(pending);
  }
  IgnoreError(SendSignal(pending.pidfd.get(), SIGKILL), "it may have just ended");
  return Fail(Code::kDeadlineExceeded, "spawn '{}': process {} did not reach its program in time",
              request.argv.front(), pending.process.pid);
}

}  // namespace gantry::os
