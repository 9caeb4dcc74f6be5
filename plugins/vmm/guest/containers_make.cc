// SPDX-License-Identifier: Apache-2.0
//
// From a request to a program that runs.
#include <sys/epoll.h>

#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/cgroup/counters.h>
#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/proto/proto_message.h>

#include "plugins/vmm/guest/containers.h"
#include "plugins/vmm/protocol/ids.h"

namespace gantry::vmm::guest {
namespace {

Status CheckId(const std::string& id, std::string_view what) {
  return protocol::IsId(id)
             ? Status()
             : Fail(Code::kInvalidArgument, "make {}: '{}' is no id", what, id.substr(0, 128));
}

Status CheckTokens(const protocol::Streams& tokens) {
  if (!tokens.terminal.empty() &&
      !(tokens.input.empty() && tokens.output.empty() && tokens.error.empty())) {
    return Fail(Code::kInvalidArgument, "make a process: a terminal has no other streams");
  }
  for (const std::string* token :
       {&tokens.input, &tokens.output, &tokens.error, &tokens.terminal}) {
    if (!token->empty() && token->size() != protocol::kTokenBytes) {
      return Fail(Code::kInvalidArgument, "make a process: a token of {} bytes, not of {}",
                  token->size(), protocol::kTokenBytes);
    }
  }
  return {};
}

}  // namespace

std::function<void(int)> Containers::SayNotDialled(const std::string& container) {
  return [this, container](int error) {
    tellers_.log(Format("dial a stream of '{}': {}", container, ErrnoName(error)));
  };
}

// The process's own ends are to be closed when its maker has them.
Status Containers::Connect(const protocol::Streams& tokens, MakeOrder& order, Process& process,
                           std::vector<UniqueFd>& theirs) {
  GANTRY_CHECK_OK(CheckTokens(tokens));
  if (!tokens.terminal.empty()) {
    order.terminal = true;
    process.terminal_token = tokens.terminal;
    GANTRY_TRY(process.terminal_socket, platform_.Dial(protocol::kStreamPort));
    return {};
  }
  const std::array<const std::string*, 3> all = {&tokens.input, &tokens.output, &tokens.error};
  for (size_t i = 0; i < all.size(); ++i) {
    if (all.at(i)->empty()) {
      continue;
    }
    GANTRY_TRY(auto pipe, MakeBlockingPipe());
    UniqueFd& ours = i == 0 ? pipe.second : pipe.first;
    UniqueFd& its = i == 0 ? pipe.first : pipe.second;
    GANTRY_CHECK_OK(SetNonblocking(ours.get(), true));
    GANTRY_TRY(UniqueFd socket, platform_.Dial(protocol::kStreamPort));
    order.streams.at(i) = its.get();
    theirs.push_back(std::move(its));
    UniqueFd none;
    UniqueFd& source = i == 0 ? none : ours;
    UniqueFd& sink = i == 0 ? ours : none;
    process.streams.push_back(std::make_unique<Stream>(loop_, std::move(socket), *all.at(i),
                                                       std::move(source), std::move(sink),
                                                       SayNotDialled(order.container)));
  }
  return {};
}

Status Containers::Begin(MakeOrder order, const protocol::Streams& tokens, Process& process) {
  std::vector<UniqueFd> theirs;
  GANTRY_CHECK_OK(Connect(tokens, order, process, theirs));
  GANTRY_TRY(process.maker, Maker::Begin(order));
  return {};
}

void Containers::Make(Container& container, const std::string& exec, MakeOrder order,
                      const protocol::Streams& tokens, Reply reply) {
  auto process = std::make_unique<Process>();
  process->exec = exec;
  order.container = container.id;
  order.folder = container.folder;
  order.bundle = container.bundle;
  if (Status begun = Begin(std::move(order), tokens, *process); !begun) {
    if (exec.empty()) {
      containers_.erase(std::string(container.id));
    }
    reply(std::unexpected(std::move(begun).error()));
    return;
  }
  ++makers_;
  process->made = std::move(reply);
  process->on_maker = loop_.On(process->maker.fd(), EPOLLIN,
                               [this, id = container.id, exec](uint32_t) { OnMaker(id, exec); });
  container.processes[exec] = std::move(process);
}

Result<cgroup::Cgroup> Containers::Allow(const protocol::CreateContainer& request) const {
  GANTRY_CHECK_OK(CheckId(request.container, "a container"));
  if (containers_.contains(request.container)) {
    return Fail(Code::kAlreadyExists, "make container '{}': it is there", request.container);
  }
  if (closed_) {
    return Fail(Code::kUnavailable, "make a container: the guest is shutting down");
  }
  if (containers_.size() >= kMost) {
    return Fail(Code::kResourceExhausted, "make a container: there are {}", kMost);
  }
  return cgroup::Cgroup::Named(hierarchy_, CgroupPathOf(request.container));
}

void Containers::Create(const protocol::CreateContainer& request, Reply reply) {
  auto cgroup = Allow(request);
  if (!cgroup) {
    reply(std::unexpected(std::move(cgroup).error()));
    return;
  }
  auto& container = containers_[request.container];
  container = std::make_unique<Container>();
  container->id = request.container;
  container->bundle = request.bundle;
  container->folder = Format("{}/{}", folder_, request.container);
  container->cgroup = std::move(*cgroup);
  MakeOrder order;
  order.spec_json = request.spec_json;
  Make(*container, "", std::move(order), request.streams, std::move(reply));
}

Result<Container*> Containers::Allow(const protocol::CreateExec& request) {
  GANTRY_CHECK_OK(CheckId(request.exec, "an exec"));
  GANTRY_TRY(Container* const container, Find(request.container));
  const auto init = FindProcess(request.container, "");
  if (container->paused || container->deleting || !init ||
      (*init)->state != protocol::ProcessState::kRunning) {
    return Fail(Code::kFailedPrecondition, "make exec '{}': container '{}' does not run",
                request.exec, request.container);
  }
  if (container->processes.contains(request.exec)) {
    return Fail(Code::kAlreadyExists, "make exec '{}' in '{}': it is there", request.exec,
                request.container);
  }
  if (container->processes.size() >= kMostProcesses) {
    return Fail(Code::kResourceExhausted, "make exec '{}' in '{}': there are {} processes",
                request.exec, request.container, kMostProcesses);
  }
  return container;
}

void Containers::Create(const protocol::CreateExec& request, Reply reply) {
  const auto container = Allow(request);
  if (!container) {
    reply(std::unexpected(container.error()));
    return;
  }
  MakeOrder order;
  order.process_json = request.process_json;
  order.init = (*container)->processes.at("")->pidfd.get();
  Make(**container, request.exec, std::move(order), request.streams, std::move(reply));
}

void Containers::Start(const protocol::Start& request, Reply reply) {
  auto found = FindProcess(request.container, request.exec);
  if (!found) {
    reply(std::unexpected(std::move(found).error()));
    return;
  }
  Process& process = **found;
  if (process.state == protocol::ProcessState::kRunning) {
    reply(std::string());
    return;
  }
  if (process.state == protocol::ProcessState::kCreated && process.started) {
    // Hooks take their time: an engine that was killed meanwhile has asked before.
    process.started = [first = std::move(process.started),
                       second = std::move(reply)](const Result<std::string>& answer) {
      first(answer);
      second(answer);
    };
    return;
  }
  Status opened =
      process.state == protocol::ProcessState::kCreated
          ? process.maker.Open()
          : Fail(Code::kFailedPrecondition, "start '{}{}{}': it {}", request.container,
                 request.exec.empty() ? "" : "/", request.exec,
                 process.state == protocol::ProcessState::kExited ? "has ended" : "is being made");
  if (!opened) {
    reply(std::unexpected(std::move(opened).error()));
    return;
  }
  process.started = std::move(reply);
}

void Containers::OnMaker(const std::string& id, const std::string& exec) {
  const auto found = FindProcess(id, exec);
  const auto container = Find(id);
  if (!found || !container || !(*found)->maker) {
    return;
  }
  Process& process = **found;
  auto heard = process.maker.Hear();
  if (!heard) {
    Failed(**container, process, std::move(heard).error());
    return;
  }
  if (std::optional<HeardWord> said = std::move(*heard)) {
    OnWord(**container, process, std::move(*said));
  }
}

void Containers::OnWord(Container& container, Process& process, HeardWord heard) {
  switch (static_cast<MakerWord::Word>(heard.word.word)) {
    case MakerWord::Word::kMade:
      Made(container, process, std::move(heard));
      break;
    case MakerWord::Word::kStarted:
      process.state = protocol::ProcessState::kRunning;
      DropMaker(process);
      TellStarted(container, process, std::string());
      break;
    default:
      Failed(container, process,
             protocol::ToError(heard.word.failure.value_or(protocol::Failure())));
  }
}

void Containers::Made(Container& container, Process& process, HeardWord heard) {
  process.pid = heard.word.pid;
  process.pidfd = std::move(heard.pidfd);
  process.state = protocol::ProcessState::kCreated;
  if (heard.console) {
    IgnoreError(SetNonblocking(heard.console.get(), true), "a terminal can do that");
    auto in = heard.console.Duplicate();
    auto out = heard.console.Duplicate();
    if (in && out) {
      process.streams.push_back(std::make_unique<Stream>(
          loop_, std::move(process.terminal_socket), process.terminal_token, std::move(*out),
          std::move(*in), SayNotDialled(container.id)));
    }
    process.console = std::move(heard.console);
  }
  if (process.exec.empty()) {
    WatchMemory(container);
  }
  const Reply made = std::exchange(process.made, nullptr);
  made(EncodeProto(
      protocol::CreateAnswer{.pid = process.pid, .warnings = std::move(heard.word.warnings)}));
  // It may have ended before this was read.
  const auto ended = unknown_.find(process.pid);
  if (ended != unknown_.end()) {
    const int status = ended->second;
    unknown_.erase(ended);
    Ended(container, process, status);
  }
}

void Containers::TellStarted(Container& container, Process& process, Result<std::string> answer) {
  const Reply started = std::exchange(process.started, nullptr);
  if (started) {
    started(std::move(answer));
  }
  if (const auto ended = std::exchange(process.ended_early, std::nullopt)) {
    Ended(container, process, *ended);
  }
}

// Before it was made nothing of it stays; later its end comes, or has come.
void Containers::Failed(Container& container, Process& process, Error error) {
  DropMaker(process);
  if (process.started) {
    process.never_ran = true;
    TellStarted(container, process, std::unexpected(std::move(error)));
    return;
  }
  const Reply made = std::exchange(process.made, nullptr);
  if (!made) {
    return;
  }
  if (cgroup::OomKills(container.cgroup.Dirs()) > 0 && process.exec.empty()) {
    error.message += " (the kernel has killed for want of memory: is its limit too low?)";
  }
  if (!process.exec.empty()) {
    container.processes.erase(std::string(process.exec));
    made(std::unexpected(std::move(error)));
    return;
  }
  Unmake(container.id, [made, error](const Result<std::string>&) { made(std::unexpected(error)); });
}

void Containers::WatchMemory(Container& container) {
  if (!container.cgroup.is_unified()) {
    return;  // It is looked at when a process ends.
  }
  auto events = cgroup::CgroupNotify::Open(container.cgroup.DirOf("memory") + "/memory.events");
  if (!events) {
    return;
  }
  container.memory_events = std::move(*events);
  IgnoreError(container.memory_events->Read(), "so that changes from here on are told");
  container.on_memory_events =
      loop_.On(container.memory_events->poll_fd(), container.memory_events->poll_events(),
               [this, id = container.id](uint32_t) {
                 const auto found = Find(id);
                 if (found && (*found)->memory_events) {
                   if (!(*found)->memory_events->Read()) {
                     (*found)->on_memory_events.Reset();
                   }
                   LookAtMemory(**found);
                 }
               });
}

}  // namespace gantry::vmm::guest
