// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/runc/fakes.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include <gantry/deadline.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/pidfd.h>

namespace gantry::runc {
namespace {

constexpr int kReadLimitMs = 10'000;

/// In the child, between fork and exec.
[[noreturn]] void Execute(const SpawnRequest& request) {
  // The way to it may be barred to who it becomes.
  constexpr int kBehindAll = 200;
  const int program =
      fcntl(open(request.argv[0].c_str(), O_PATH | O_CLOEXEC), F_DUPFD_CLOEXEC, kBehindAll);
  for (const auto& [fd, type] : request.namespaces) {
    if (setns(fd.get(), type) != 0) {
      _exit(124);
    }
  }
  if (request.uid && (setresgid(*request.gid, *request.gid, *request.gid) != 0 ||
                      setresuid(*request.uid, *request.uid, *request.uid) != 0)) {
    _exit(124);
  }
  for (int number = 0; number < 3; ++number) {
    const auto given =
        std::ranges::find(request.fds, number, [](const auto& fd) { return fd.second; });
    const int fd = given == request.fds.end() ? open("/dev/null", O_RDWR) : given->first.get();
    dup2(fd, number);
  }
  std::vector<char*> argv;
  for (const std::string& text : request.argv) {
    argv.push_back(const_cast<char*>(text.c_str()));
  }
  argv.push_back(nullptr);
  std::vector<char*> env;
  for (const std::string& text : request.env) {
    env.push_back(const_cast<char*>(text.c_str()));
  }
  env.push_back(nullptr);
  for (const auto& [fd, number] : request.fds) {
    if (number > 2) {
      dup2(fd.get(), number);
    }
  }
  setsid();
  if (chdir(request.cwd.empty() ? "/" : request.cwd.c_str()) == 0) {
    if (request.program) {
      execveat(request.program.get(), "", argv.data(), env.data(), AT_EMPTY_PATH);
      _exit(125);
    }
    if (!request.namespaces.empty()) {
      execveat(program, "", argv.data(), env.data(), AT_EMPTY_PATH);
    }
    execve(argv[0], argv.data(), env.data());
  }
  _exit(125);
}

/// How the children of the test ended that nobody has asked for yet.
std::map<int32_t, int>& Reaped() {
  static std::map<int32_t, int> reaped;
  return reaped;
}

/// As the keeper does: orphans that nobody knows are reaped too.
void ReapAll() {
  int raw = 0;
  for (pid_t pid = waitpid(-1, &raw, WNOHANG); pid > 0; pid = waitpid(-1, &raw, WNOHANG)) {
    Reaped()[pid] = raw;
  }
}

/// Empty: none.
std::string FileBehind(const UniqueFd& program) {
  return program ? std::filesystem::read_symlink(Format("/proc/self/fd/{}", program.get())).string()
                 : std::string();
}

pid_t Start(const SpawnRequest& request) {
  ReapAll();
  const pid_t pid = fork();
  if (pid == 0) {
    Execute(request);
  }
  Reaped().erase(pid);
  return pid;
}

std::string ReadSome(const UniqueFd& fd, const std::string& wanted) {
  std::string text;
  std::array<char, 4096> buffer{};
  pollfd one = {fd.get(), POLLIN, 0};
  while ((wanted.empty() || !text.contains(wanted)) && poll(&one, 1, kReadLimitMs) > 0) {
    const ssize_t n = read(fd.get(), buffer.data(), buffer.size());
    if (n <= 0) {
      break;
    }
    text.append(buffer.data(), static_cast<size_t>(n));
  }
  return text;
}

}  // namespace

TempDir::TempDir() {
  std::string name = "/tmp/gantry-runc-XXXXXX";
  path_ = mkdtemp(name.data());
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void MakeDir(const std::string& path) { std::filesystem::create_directories(path); }

void Write(const std::string& path, const std::string& text, int mode) {
  std::ofstream(path, std::ios::trunc) << text;
  chmod(path.c_str(), static_cast<mode_t>(mode));
}

std::string Slurp(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return "(none)";
  }
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool IsThere(const std::string& path) { return Exists(path); }

std::string ReadAll(const UniqueFd& fd) { return ReadSome(fd, ""); }

std::string ReadUntil(const UniqueFd& fd, const std::string& wanted) {
  return ReadSome(fd, wanted);
}

TestPipe::TestPipe() {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  read_end = UniqueFd(ends[0]);
  write_end = UniqueFd(ends[1]);
}

FakeHostProcess::FakeHostProcess(int32_t pid)
    : pid_{pid}, start_time_(StartTimeOf({pid}).value_or(0)) {
  if (auto fd = OpenPidfd(HostPid{pid})) {
    pidfd_ = std::move(*fd);
  }
}

FakeHostProcess::~FakeHostProcess() {
  if (!Ended()) {
    kill(pid_.value, SIGKILL);
    IgnoreError(Wait(std::chrono::milliseconds(kReadLimitMs)), "the test ends anyhow");
  }
}

Status FakeHostProcess::Signal(int signal) {
  if (Ended() || kill(pid_.value, signal) != 0) {
    return Fail(Code::kNotFound, "process already finished");
  }
  return {};
}

std::optional<WaitStatus> FakeHostProcess::Ended() const {
  ReapAll();
  if (const auto end = Reaped().find(pid_.value); !ended_ && end != Reaped().end()) {
    ended_ = WaitStatus{end->second, 1};
  }
  return ended_;
}

Result<WaitStatus> FakeHostProcess::Wait(std::chrono::milliseconds limit) {
  // In turns: the init of a pid namespace ends only when somebody reaps the
  // orphans of that namespace.
  constexpr int kTurnMs = 10;
  const auto deadline = std::chrono::steady_clock::now() + limit;
  pollfd one = {pidfd_.get(), POLLIN, 0};
  while (!Ended()) {
    if (Left(deadline).count() == 0) {
      return Fail(Code::kDeadlineExceeded, "wait for {}", pid_.value);
    }
    poll(&one, 1, std::min(kTurnMs, PollTimeout(deadline)));
  }
  return *ended_;
}

std::shared_ptr<FakeHostProcess> RunShell(const std::string& script) {
  SpawnRequest request;
  request.argv = {"/bin/sh", "-c", script};
  request.env = {"PATH=/usr/bin:/bin"};
  return std::make_shared<FakeHostProcess>(Start(request));
}

FakeSandboxContext::FakeSandboxContext() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  // As the engine does.
  signal(SIGPIPE, SIG_IGN);
}

Result<std::shared_ptr<HostProcess>> FakeSandboxContext::Spawn(SpawnRequest request) {
  spawned.push_back(request.argv);
  environments.push_back(request.env);
  programs.push_back(FileBehind(request.program));
  if (refuse_all || (refuse_programs && request.program)) {
    return FailErrno(EACCES, "execute '{}'", request.argv[0]);
  }
  if (access(request.argv[0].c_str(), X_OK) != 0) {
    return FailErrno(errno, "execute '{}'", request.argv[0]);
  }
  const pid_t pid = Start(request);
  auto process = std::make_shared<FakeHostProcess>(pid);
  processes_[pid] = process;
  if (!request.tag.empty()) {
    tags[request.tag] = process;
  }
  return process;
}

Result<std::shared_ptr<HostProcess>> FakeSandboxContext::Adopt(HostPid pid) {
  if (const auto known = processes_.find(pid.value); known != processes_.end()) {
    return known->second;
  }
  ReapAll();
  // A descendant, and a child when the one between has ended.
  if (!Reaped().contains(pid.value) && kill(pid.value, 0) != 0) {
    return Fail(Code::kNotFound, "adopt {}: it is gone", pid.value);
  }
  auto process = std::make_shared<FakeHostProcess>(pid.value);
  processes_[pid.value] = process;
  return process;
}

Result<std::shared_ptr<HostProcess>> FakeSandboxContext::Recover(HostPid pid, uint64_t start_time) {
  auto process = Adopt(pid);
  if (process && (*process)->start_time() != start_time) {
    return Fail(Code::kNotFound, "recover {}: another process", pid.value);
  }
  return process;
}

std::shared_ptr<HostProcess> FakeSandboxContext::FindSpawned(std::string_view tag) {
  const auto found = tags.find(tag);
  return found == tags.end() ? nullptr : found->second;
}

Result<std::unique_ptr<Watch>> FakeSandboxContext::WatchReadable(int, std::function<void()>) {
  return Fail(Code::kUnimplemented, "watch: not in this fake");
}

Status FakeSandboxContext::Store(std::string_view name, const UniqueFd& fd) {
  GANTRY_TRY(stored[std::string(name)], fd.Duplicate());
  return {};
}

Result<UniqueFd> FakeSandboxContext::Take(std::string_view name) {
  const auto found = stored.find(name);
  if (found == stored.end()) {
    return Fail(Code::kNotFound, "take '{}': not stored", name);
  }
  return found->second.Duplicate();
}

std::vector<std::string> FakeSandboxContext::verbs() const {
  static const std::vector<std::string> known = {"create", "start",      "exec",
                                                 "delete", "checkpoint", "restore"};
  std::vector<std::string> found;
  for (const auto& argv : spawned) {
    const auto verb = std::ranges::find_first_of(argv, known);
    found.push_back(verb == argv.end() ? "" : *verb);
  }
  return found;
}

FakeProcessContext::FakeProcessContext(const std::string& container, const std::string& exec) {
  container_ = ContainerId::Parse(container).value_or(ContainerId());
  exec_ = ExecId::Parse(exec).value_or(ExecId());
}

Status FakeProcessContext::Bind(std::shared_ptr<HostProcess> process) {
  if (refuse_bind) {
    return Fail(Code::kInternal, "bind: refused by the test");
  }
  bound = std::move(process);
  return {};
}

Status FakeProcessContext::AttachConsole(UniqueFd master, ConsoleKind) {
  console = std::move(master);
  return {};
}

Status FakeProcessContext::AttachStream(Stream, UniqueFd) {
  return Fail(Code::kUnimplemented, "attach: not in this fake");
}

}  // namespace gantry::runc
