// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/remote/server/sandbox.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "tests/contract/remote/server/proc.h"

namespace gantry::remote {
namespace {

constexpr std::chrono::seconds kCallLimit{5};
constexpr const char* kOomAnnotation = "remote.test/oom-exit";
constexpr const char* kForeignAnnotation = "remote.test/foreign-console";

std::string AnnotationOf(const Json& spec, const char* name) {
  return spec.value("annotations", Json::object()).value(name, std::string());
}

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::unexpected<Error> Finished() {
  return Fail(Code::kNotFound, "process already finished: not found");
}

uint64_t MemoryLimitOf(const Json& resources) {
  const Json memory = resources.value("memory", Json::object());
  return memory.value("limit", uint64_t{0});
}

UniqueFd BlockSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigaddset(&set, SIGTERM);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return UniqueFd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

/// With its master, as long as nobody has confirmed that it arrived.
Message WithConsole(Json body, const Child& child) {
  Message answer;
  answer.body = std::move(body);
  if (child.console) {
    if (Result<UniqueFd> copy = child.console.Duplicate()) {
      answer.fds.push_back(std::move(*copy));
    }
  }
  return answer;
}

}  // namespace

int FakeSandbox::Run() {
  const UniqueFd signals = BlockSignals();
  while (!ending_) {
    std::array<pollfd, 2> fds = {pollfd{door_.get(), POLLIN, 0}, pollfd{signals.get(), POLLIN, 0}};
    if (poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) {
      break;
    }
    // Ends first: an answer should not be older than a report.
    ServeSignals(signals.get());
    if (fds[0].revents != 0 && !ServeDoor()) {
      break;
    }
  }
  EndAll();
  return 0;
}

/// False: nobody can come any more.
bool FakeSandbox::ServeDoor() {
  Result<UniqueFd> connection = ReceiveConnection(door_.get());
  if (!connection) {
    return connection.error().code == Code::kNotFound;
  }
  Result<Message> call = ReceiveMessage(connection->get(), kCallLimit);
  if (!call) {
    return true;  // Its engine died.
  }
  if (call->body.value("do", std::string()) == "events") {
    listeners_.push_back(std::move(*connection));
    for (const auto& [id, container] : containers_) {
      for (const auto& [exec, process] : container.execs) {
        if (process.state == State::kEnded) {
          Report(ExitOf(process));
        }
      }
      if (container.init.state == State::kEnded) {
        Report(ExitOf(container.init));
      }
    }
    return true;
  }
  Result<Message> answer = Handle(std::move(*call));
  if (!answer) {
    answer = Message{ToJson(answer.error()), {}};
  }
  std::vector<int> fds;
  for (const UniqueFd& fd : answer->fds) {
    fds.push_back(fd.get());
  }
  IgnoreError(SendMessage(connection->get(), answer->body, fds, kCallLimit), "its engine died");
  return true;
}

void FakeSandbox::ServeSignals(int fd) {
  signalfd_siginfo info{};
  while (read(fd, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    if (info.ssi_signo != SIGTERM) {
      continue;
    }
    // The power button: whoever runs in here is asked to end.
    for (const auto& [id, container] : containers_) {
      if (container.init.state == State::kRunning) {
        kill(container.init.child.pid, SIGTERM);
      }
    }
  }
  int status = 0;
  for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0; pid = waitpid(-1, &status, WNOHANG)) {
    OnReaped(pid, status);
  }
}

void FakeSandbox::OnReaped(pid_t pid, int wait_status) {
  for (auto& [id, container] : containers_) {
    std::vector<Process*> all = {&container.init};
    for (auto& [exec, process] : container.execs) {
      all.push_back(&process);
    }
    for (Process* process : all) {
      if (process->child.pid != pid || process->state == State::kEnded) {
        continue;
      }
      Conclude(*process, wait_status);
      if (container.oom_status == process->status) {
        Report({{"oom", {{"container", id}}}});
      }
      Report(ExitOf(*process));
    }
  }
}

void FakeSandbox::Conclude(Process& process, int wait_status) {
  process.state = State::kEnded;
  process.status = WIFSIGNALED(wait_status) ? 128U + static_cast<uint32_t>(WTERMSIG(wait_status))
                                            : static_cast<uint32_t>(WEXITSTATUS(wait_status));
  process.ended_at_ns = Now();
}

Json FakeSandbox::ExitOf(const Process& process) {
  return {{"exit",
           {{"container", process.container},
            {"exec", process.exec},
            {"status", process.status},
            {"at", process.ended_at_ns}}}};
}

void FakeSandbox::Report(const Json& event) {
  std::erase_if(listeners_, [&](const UniqueFd& listener) {
    return !SendMessage(listener.get(), event, {}, kCallLimit);
  });
}

Result<Message> FakeSandbox::Handle(Message call) {
  const std::string what = call.body.value("do", std::string());
  const auto plain = [](const Status& status) -> Result<Message> {
    return status ? Result<Message>(Message{Json::object(), {}}) : std::unexpected(status.error());
  };
  if (what == "create") {
    return Create(std::move(call));
  }
  if (what == "exec") {
    return Exec(std::move(call));
  }
  if (what == "start") {
    return plain(Start(call.body));
  }
  if (what == "state") {
    return StateOf(call.body);
  }
  if (what == "kill") {
    return plain(Kill(call.body));
  }
  if (what == "delete") {
    return Delete(call.body);
  }
  if (what == "shutdown") {
    EndAll();
    ending_ = true;
    return plain({});
  }
  if (what == "console") {
    GANTRY_TRY(Process * process, Find(call.body));
    process->child.console.reset();
    return plain({});
  }
  GANTRY_TRY(Container * container, FindContainer(call.body));
  if (what == "pause" || what == "resume") {
    return plain(SetPaused(call.body, what == "pause"));
  }
  if (what == "update") {
    container->memory_limit = MemoryLimitOf(call.body.value("resources", Json::object()));
    return plain({});
  }
  if (what == "stats") {
    return Message{Stats(*container), {}};
  }
  if (what == "processes") {
    return Message{Processes(*container), {}};
  }
  return Fail(Code::kUnimplemented, "'{}': the sandbox does not know it", what);
}

Result<Message> FakeSandbox::Create(Message call) {
  const std::string id = call.body.value("container", std::string());
  if (containers_.contains(id)) {
    return Fail(Code::kAlreadyExists, "create '{}': it exists", id);
  }
  const Json spec = Json::parse(call.body.value("spec", std::string()), nullptr, false);
  if (!spec.is_object() || !spec.contains("process")) {
    return Fail(Code::kInvalidArgument, "create '{}': no spec with a process", id);
  }
  ProcessRequest wanted{!AnnotationOf(spec, kForeignAnnotation).empty(), spec["process"],
                        std::move(call.fds)};
  wanted.process["terminal"] = call.body.value("terminal", false);
  Container container;
  container.foreign_console = wanted.foreign_console;
  GANTRY_TRY(container.init.child,
             SpawnInit(spec, call.body.value("rootfs", std::string()), std::move(wanted)));
  container.init.container = id;
  container.init.number = NumberInside(container.init.child.pid);
  if (spec.contains("linux")) {
    container.memory_limit = MemoryLimitOf(spec["linux"].value("resources", Json::object()));
  }
  if (const std::string status = AnnotationOf(spec, kOomAnnotation); !status.empty()) {
    container.oom_status = static_cast<uint32_t>(std::stoul(status));
  }
  Container& kept = containers_[id] = std::move(container);
  return WithConsole({{"number", kept.init.number}, {"foreign", kept.foreign_console}},
                     kept.init.child);
}

Result<Message> FakeSandbox::Exec(Message call) {
  GANTRY_TRY(Container * container, FindContainer(call.body));
  const std::string id = call.body.value("exec", std::string());
  if (container->init.state != State::kRunning || container->paused) {
    return Fail(Code::kFailedPrecondition, "exec '{}': its container does not run", id);
  }
  if (container->execs.contains(id)) {
    return Fail(Code::kAlreadyExists, "exec '{}': it exists", id);
  }
  Json process = Json::parse(call.body.value("process", std::string()), nullptr, false);
  if (!process.is_object()) {
    return Fail(Code::kInvalidArgument, "exec '{}': no process object", id);
  }
  Process exec;
  exec.container = container->init.container;
  exec.exec = id;
  GANTRY_TRY(exec.child, SpawnExec(container->init.child.pid,
                                   ProcessRequest{container->foreign_console, std::move(process),
                                                  std::move(call.fds)}));
  exec.number = NumberInside(exec.child.pid);
  exec.state = State::kRunning;
  Process& kept = container->execs[id] = std::move(exec);
  return WithConsole({{"number", kept.number}, {"foreign", container->foreign_console}},
                     kept.child);
}

Status FakeSandbox::Start(const Json& call) {
  GANTRY_TRY(Container * container, FindContainer(call));
  if (container->init.state != State::kCreated) {
    return {};  // By an engine that did not live to say so.
  }
  GANTRY_CHECK_OK(Release(container->init.child));
  container->init.state = State::kRunning;
  return {};
}

Result<Message> FakeSandbox::StateOf(const Json& call) {
  GANTRY_TRY(Container * container, FindContainer(call));
  GANTRY_TRY(Process * process, Find(call));
  constexpr std::array kNames = {"created", "running", "ended"};
  return WithConsole({{"state", kNames.at(static_cast<size_t>(process->state))},
                      {"number", process->number},
                      {"foreign", container->foreign_console},
                      {"status", process->status},
                      {"at", process->ended_at_ns}},
                     process->child);
}

Status FakeSandbox::Kill(const Json& call) {
  const int signal = call.value("signal", 0);
  if (call.value("all", false)) {
    GANTRY_TRY(Container * container, FindContainer(call));
    if (container->init.state != State::kEnded) {
      for (const pid_t pid : ProcessesInside(container->init.child.pid)) {
        kill(pid, signal);
      }
    }
    return {};
  }
  GANTRY_TRY(Process * process, Find(call));
  // Who has no controlling terminal has no job control: all of its session is one group.
  const pid_t to = call.value("foreground", false) ? -process->child.pid : process->child.pid;
  if (process->state == State::kEnded || kill(to, signal) != 0) {
    return Finished();
  }
  return {};
}

Status FakeSandbox::SetPaused(const Json& call, bool paused) {
  GANTRY_TRY(Container * container, FindContainer(call));
  if (container->init.state == State::kEnded) {
    return Finished();
  }
  // Twice: what was born during the first pass is seen in the second.
  for (int pass = 0; pass < 2; ++pass) {
    for (const pid_t pid : ProcessesInside(container->init.child.pid)) {
      kill(pid, paused ? SIGSTOP : SIGCONT);
    }
  }
  container->paused = paused;
  return {};
}

/// Its exit is added to `ended`, not reported.
void FakeSandbox::End(Process& process, Json& ended) {
  if (process.state == State::kEnded || process.child.pid <= 0) {
    return;
  }
  kill(process.child.pid, SIGKILL);
  int status = 0;
  while (waitpid(process.child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  Conclude(process, status);
  ended.push_back(ExitOf(process));
}

/// Execs first: they are of the init's pid namespace, so its end waits until they
/// have been reaped.
void FakeSandbox::End(Container& container, Json& ended) {
  for (auto& [id, exec] : container.execs) {
    End(exec, ended);
  }
  End(container.init, ended);
}

/// What this ends is in the answer, and in no report: that could come after it.
Message FakeSandbox::Delete(const Json& call) {
  Json ended = Json::array();
  const auto found = containers_.find(call.value("container", std::string()));
  const std::string exec = call.value("exec", std::string());
  if (found != containers_.end() && exec.empty()) {
    End(found->second, ended);
    containers_.erase(found);
  } else if (found != containers_.end()) {
    std::map<std::string, Process>& execs = found->second.execs;
    if (const auto one = execs.find(exec); one != execs.end()) {
      End(one->second, ended);
      execs.erase(one);
    }
  }
  return {{{"ended", std::move(ended)}}, {}};
}

void FakeSandbox::EndAll() {
  Json ended = Json::array();
  for (auto& [id, container] : containers_) {
    End(container, ended);
  }
  containers_.clear();
  for (const Json& exit : ended) {
    Report(exit);
  }
}

Json FakeSandbox::Stats(const Container& container) const {
  const std::vector<pid_t> pids = container.init.state == State::kEnded
                                      ? std::vector<pid_t>()
                                      : ProcessesInside(container.init.child.pid);
  const Usage usage = UsageOf(pids);
  return {{"memory", usage.memory_bytes},
          {"memory_limit", container.memory_limit},
          {"cpu_ns", usage.cpu_ns},
          {"processes", pids.size()}};
}

Json FakeSandbox::Processes(const Container& container) const {
  Json list = Json::array();
  if (container.init.state != State::kEnded) {
    for (const pid_t pid : ProcessesInside(container.init.child.pid)) {
      const auto exec = std::ranges::find_if(
          container.execs, [&](const auto& one) { return one.second.child.pid == pid; });
      list.push_back({{"number", NumberInside(pid)},
                      {"exec", exec == container.execs.end() ? std::string() : exec->first}});
    }
  }
  return {{"processes", list}};
}

Result<FakeSandbox::Container*> FakeSandbox::FindContainer(const Json& call) {
  const std::string id = call.value("container", std::string());
  const auto found = containers_.find(id);
  if (found == containers_.end()) {
    return Fail(Code::kNotFound, "container '{}': not in this sandbox", id);
  }
  return &found->second;
}

Result<FakeSandbox::Process*> FakeSandbox::Find(const Json& call) {
  GANTRY_TRY(Container * container, FindContainer(call));
  const std::string exec = call.value("exec", std::string());
  if (exec.empty()) {
    return &container->init;
  }
  const auto found = container->execs.find(exec);
  if (found == container->execs.end()) {
    return Fail(Code::kNotFound, "exec '{}': not in this container", exec);
  }
  return &found->second;
}

}  // namespace gantry::remote
