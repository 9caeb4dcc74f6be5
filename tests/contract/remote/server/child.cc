// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/remote/server/child.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "tests/contract/remote/server/rootfs.h"

namespace gantry::remote {
namespace {

constexpr std::chrono::seconds kChildLimit{20};
/// Where a child keeps its end of the conversation with its parent.
constexpr int kReportFd = 3;
constexpr int kNotExecuted = 127;

pid_t Clone(unsigned long flags) {
  return static_cast<pid_t>(syscall(SYS_clone, flags | SIGCHLD, nullptr, nullptr, nullptr, 0UL));
}

/// Signals as a program expects them; of the descriptors only its streams and
/// the report stay.
void BecomeClean(const ProcessRequest& wanted, int report) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  for (size_t i = 0; i < wanted.streams.size(); ++i) {
    dup2(wanted.streams[i].get(), static_cast<int>(i));
  }
  if (report != kReportFd) {
    dup2(report, kReportFd);
  }
  close_range(kReportFd + 1, ~0U, 0);
  fcntl(kReportFd, F_SETFD, FD_CLOEXEC);
}

[[noreturn]] void Refuse(const Error& error) {
  IgnoreError(SendMessage(kReportFd, ToJson(error), {}, kChildLimit), "nobody is left to be told");
  _exit(kNotExecuted);
}

Result<UniqueFd> MakeTerminal(const Json& process, bool foreign) {
  UniqueFd master(open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!master || unlockpt(master.get()) != 0) {
    return FailErrno(errno, "open '/dev/ptmx'");
  }
  std::array<char, 64> name{};
  if (ptsname_r(master.get(), name.data(), name.size()) != 0) {
    return FailErrno(errno, "name the terminal");
  }
  const UniqueFd slave(open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!slave || (!foreign && ioctl(slave.get(), TIOCSCTTY, 0) != 0)) {
    return FailErrno(errno, "open the terminal '{}'", name.data());
  }
  if (process.contains("consoleSize")) {
    const Json& wanted = process["consoleSize"];
    const winsize size{wanted.value("height", uint16_t{0}), wanted.value("width", uint16_t{0}), 0,
                       0};
    ioctl(slave.get(), TIOCSWINSZ, &size);
  }
  if (process.contains("user") &&
      fchown(slave.get(), process["user"].value("uid", 0U), static_cast<gid_t>(-1)) != 0) {
    return FailErrno(errno, "give the terminal to its user");
  }
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    dup2(slave.get(), fd);
  }
  return master;
}

std::vector<std::string> Texts(const Json& process, const char* key) {
  std::vector<std::string> texts;
  for (const Json& text : process.value(key, Json::array())) {
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) {
    pointers.push_back(text.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

/// As a shell finds it. Errors: kInvalidArgument with a text for the user.
Result<std::string> FindProgram(const Json& process) {
  const std::vector<std::string> args = Texts(process, "args");
  if (args.empty() || args.front().empty()) {
    return Fail(Code::kInvalidArgument, "execute: there is no program");
  }
  const std::string& name = args.front();
  std::string path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  for (const std::string& entry : Texts(process, "env")) {
    if (entry.starts_with("PATH=")) {
      path = entry.substr(5);
    }
  }
  if (name.contains('/')) {
    if (access(name.c_str(), X_OK) == 0) {
      return name;
    }
    return FailErrno(errno, "exec: '{}'", name);
  }
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    const std::string file = path.substr(begin, end - begin) + "/" + name;
    if (access(file.c_str(), X_OK) == 0) {
      return file;
    }
    begin = end + 1;
  }
  return Fail(Code::kNotFound, "exec: '{}': executable file not found in $PATH", name);
}

Status BecomeUser(const Json& process) {
  const Json user = process.value("user", Json::object());
  std::vector<gid_t> groups;
  for (const Json& group : user.value("additionalGids", Json::array())) {
    groups.push_back(group.get<gid_t>());
  }
  if (setgroups(groups.size(), groups.data()) != 0 || setgid(user.value("gid", 0U)) != 0 ||
      setuid(user.value("uid", 0U)) != 0) {
    return FailErrno(errno, "become the user");
  }
  umask(user.value("umask", 022U));
  return {};
}

Status SetLimits(const Json& process) {
  for (const Json& one : process.value("rlimits", Json::array())) {
    const std::string type = one.value("type", std::string());
    const int resource = type == "RLIMIT_NOFILE" ? RLIMIT_NOFILE
                         : type == "RLIMIT_CORE" ? RLIMIT_CORE
                                                 : -1;
    const rlimit limit{one.value("soft", rlim_t{0}), one.value("hard", rlim_t{0})};
    if (resource < 0) {
      return Fail(Code::kUnimplemented, "set '{}': not in this sandbox", type);
    }
    if (setrlimit(resource, &limit) != 0) {
      return FailErrno(errno, "set '{}'", type);
    }
  }
  return {};
}

/// Does not return, but with an error.
Status Execute(const Json& process, const std::string& program) {
  const std::string cwd = process.value("cwd", std::string("/"));
  std::error_code error;
  std::filesystem::create_directories(cwd, error);
  if (chdir(cwd.c_str()) != 0) {
    return FailErrno(errno, "change to the directory '{}'", cwd);
  }
  GANTRY_CHECK_OK(SetLimits(process));
  GANTRY_CHECK_OK(BecomeUser(process));
  if (process.value("noNewPrivileges", false) && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return FailErrno(errno, "give up new privileges");
  }
  // Whoever has no sandbox any more has no life.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::vector<std::string> args = Texts(process, "args");
  std::vector<std::string> env = Texts(process, "env");
  execve(program.c_str(), Pointers(args).data(), Pointers(env).data());
  return FailErrno(errno, "exec: '{}'", program);
}

const Json* FindNamespace(const Json& spec, std::string_view type) {
  if (!spec.contains("linux") || !spec["linux"].contains("namespaces")) {
    return nullptr;
  }
  for (const Json& one : spec["linux"]["namespaces"]) {
    if (one.value("type", std::string()) == type) {
      return &one;
    }
  }
  return nullptr;
}

/// The terminal where one is wanted, and the file to execute.
Result<std::pair<UniqueFd, std::string>> GetReady(const Json& process, bool foreign_console) {
  if (setsid() < 0) {
    return FailErrno(errno, "begin a session");
  }
  UniqueFd master;
  if (process.value("terminal", false)) {
    GANTRY_TRY(master, MakeTerminal(process, foreign_console));
  }
  GANTRY_TRY(std::string program, FindProgram(process));
  return std::pair(std::move(master), std::move(program));
}

Status ReportReady(UniqueFd master) {
  return SendMessage(kReportFd, {{"ready", true}},
                     master ? std::vector<int>{master.get()} : std::vector<int>(), kChildLimit);
}

Status RunInit(const Json& spec, const std::string& rootfs, const ProcessRequest& wanted) {
  if (const Json* net = FindNamespace(spec, "network"); net != nullptr && net->contains("path")) {
    const UniqueFd fd(open((*net)["path"].get<std::string>().c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd || setns(fd.get(), CLONE_NEWNET) != 0) {
      return FailErrno(errno, "join the network namespace");
    }
  }
  if (const std::string name = spec.value("hostname", std::string()); !name.empty()) {
    sethostname(name.data(), name.size());
  }
  GANTRY_CHECK_OK(EnterRootfs(spec, rootfs));
  GANTRY_TRY(auto ready, GetReady(wanted.process, wanted.foreign_console));
  GANTRY_CHECK_OK(ReportReady(std::move(ready.first)));
  char go = 0;
  if (read(kReportFd, &go, 1) != 1) {
    _exit(kNotExecuted);  // It will not be started.
  }
  return Execute(wanted.process, ready.second);
}

Status JoinNamespaces(pid_t init) {
  constexpr std::array<std::pair<const char*, int>, 5> kKinds = {{{"ipc", CLONE_NEWIPC},
                                                                  {"uts", CLONE_NEWUTS},
                                                                  {"net", CLONE_NEWNET},
                                                                  {"pid", CLONE_NEWPID},
                                                                  {"mnt", CLONE_NEWNS}}};
  const std::string folder = "/proc/" + std::to_string(init) + "/ns/";
  std::vector<UniqueFd> fds;
  for (const auto& [name, kind] : kKinds) {
    fds.emplace_back(open((folder + name).c_str(), O_RDONLY | O_CLOEXEC));
  }
  for (size_t i = 0; i < kKinds.size(); ++i) {
    if (!fds[i] || setns(fds[i].get(), kKinds[i].second) != 0) {
      return FailErrno(errno, "join the container's {} namespace", kKinds[i].first);
    }
  }
  return {};
}

/// Joins, then runs the program in a child of its parent's: only a child is in
/// the pid namespace that was joined.
Status RunExec(pid_t init, const ProcessRequest& wanted) {
  GANTRY_CHECK_OK(JoinNamespaces(init));
  const pid_t pid = Clone(CLONE_PARENT);
  if (pid < 0) {
    return FailErrno(errno, "fork in the container");
  }
  if (pid > 0) {
    const Status told = SendMessage(kReportFd, {{"pid", pid}}, {}, kChildLimit);
    _exit(told ? 0 : kNotExecuted);
  }
  GANTRY_TRY(auto ready, GetReady(wanted.process, wanted.foreign_console));
  GANTRY_CHECK_OK(ReportReady(std::move(ready.first)));
  return Execute(wanted.process, ready.second);
}

void Reap(pid_t pid) {
  while (pid > 0 && waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

/// Takes what a child says until its program runs (the end of the stream).
Status ListenToExec(Child& child) {
  while (true) {
    Result<Message> said = ReceiveMessage(child.control.get(), kChildLimit);
    if (!said) {
      return said.error().code == Code::kUnavailable ? Status()
                                                     : std::unexpected(std::move(said).error());
    }
    child.pid = said->body.value("pid", child.pid);
    if (!said->fds.empty()) {
      child.console = std::move(said->fds.front());
    }
    GANTRY_CHECK_OK(CheckAnswer(said->body));
  }
}

}  // namespace

Result<Child> SpawnInit(const Json& spec, const std::string& rootfs, ProcessRequest wanted) {
  GANTRY_TRY(auto pair, MakePair());
  unsigned long flags = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC;
  if (const Json* net = FindNamespace(spec, "network"); net != nullptr && !net->contains("path")) {
    flags |= CLONE_NEWNET;
  }
  Child child;
  child.pid = Clone(flags);
  if (child.pid < 0) {
    return FailErrno(errno, "fork a container");
  }
  if (child.pid == 0) {
    BecomeClean(wanted, pair.second.get());
    Refuse(RunInit(spec, rootfs, wanted).error());
  }
  pair.second.reset();
  child.control = std::move(pair.first);
  Result<Message> said = ReceiveMessage(child.control.get(), kChildLimit);
  const Status ready = said ? CheckAnswer(said->body) : Status(std::unexpected(said.error()));
  if (!ready) {
    kill(child.pid, SIGKILL);
    Reap(child.pid);
    return std::unexpected(ready.error());
  }
  if (!said->fds.empty()) {
    child.console = std::move(said->fds.front());
  }
  return child;
}

Status Release(const Child& init) {
  if (send(init.control.get(), "g", 1, MSG_NOSIGNAL) != 1) {
    return Fail(Code::kNotFound, "start: process already finished: not found");
  }
  const Result<Message> said = ReceiveMessage(init.control.get(), kChildLimit);
  if (!said) {
    return said.error().code == Code::kUnavailable ? Status() : std::unexpected(said.error());
  }
  return CheckAnswer(said->body);
}

Result<Child> SpawnExec(pid_t init, ProcessRequest wanted) {
  GANTRY_TRY(auto pair, MakePair());
  const pid_t helper = Clone(0);
  if (helper < 0) {
    return FailErrno(errno, "fork an exec");
  }
  if (helper == 0) {
    BecomeClean(wanted, pair.second.get());
    Refuse(RunExec(init, wanted).error());
  }
  pair.second.reset();
  Child child;
  child.control = std::move(pair.first);
  const Status ran = ListenToExec(child);
  Reap(helper);
  if (!ran) {
    if (child.pid > 0) {
      kill(child.pid, SIGKILL);
      Reap(child.pid);
    }
    return std::unexpected(ran.error());
  }
  return child;
}

}  // namespace gantry::remote
