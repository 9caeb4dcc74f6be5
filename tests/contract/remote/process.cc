// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/remote/process.h"

#include <array>
#include <utility>

namespace gantry::remote {

RemoteProcess::RemoteProcess(ProcessContext& process, ContainerContext* container,
                             std::shared_ptr<SandboxParts> parts)
    : process_(process),
      name_(process.container().str(), process.exec().str()),
      parts_(std::move(parts)) {
  if (parts_->link) {
    parts_->link->Register(name_, process_, container);
  }
  if (parts_->server) {
    process_.SetPid(parts_->server->pid());
  }
}

RemoteProcess::~RemoteProcess() {
  if (parts_->link) {
    parts_->link->Unregister(name_);
  }
}

Json RemoteProcess::Call(const char* what) const {
  return {{"do", what}, {"container", name_.first}, {"exec", name_.second}};
}

Result<Message> RemoteProcess::Ask(const Json& call, const std::vector<int>& fds) const {
  if (!parts_->link) {
    return Fail(Code::kUnavailable, "the sandbox of '{}' is gone", name_.first);
  }
  return parts_->link->Ask(call, fds);
}

std::string RemoteProcess::ToKeep() const {
  return name_.first + std::string("\0\xff", 2) + name_.second;
}

Status RemoteProcess::Make(const Json& call, bool terminal) {
  // Whatever the sandbox knows has been kept, too.
  GANTRY_CHECK_OK(process_.Save(ToKeep()));
  std::vector<UniqueFd> theirs;
  std::vector<int> fds;
  if (!terminal) {
    // The core's ends are stored before there is a process: should the engine
    // die in between, the streams are there, or there is nothing.
    for (const Stream stream : {Stream::kStdin, Stream::kStdout, Stream::kStderr}) {
      GANTRY_TRY(auto pair, MakePair());
      GANTRY_CHECK_OK(process_.AttachStream(stream, std::move(pair.first)));
      fds.push_back(pair.second.get());
      theirs.push_back(std::move(pair.second));
    }
  }
  GANTRY_TRY(Message answer, Ask(call, fds));
  return PassConsole(std::move(answer));
}

Status RemoteProcess::PassConsole(Message answer) {
  if (answer.fds.empty()) {
    return {};
  }
  const ConsoleKind kind =
      answer.body.value("foreign", false) ? ConsoleKind::kForeign : ConsoleKind::kControlling;
  const Status attached = process_.AttachConsole(std::move(answer.fds.front()), kind);
  // An engine before this one may have got this far.
  if (!attached && attached.error().code != Code::kFailedPrecondition) {
    return attached;
  }
  GANTRY_CHECK_OK(Ask(Call("console")));
  return {};
}

Status RemoteProcess::Recover(const std::string& saved) {
  Result<Message> state = Ask(Call("state"));
  if (!state && state.error().code == Code::kNotFound) {
    return Fail(Code::kAborted, "recover '{}' '{}': the sandbox has no such process", name_.first,
                name_.second);
  }
  if (saved != ToKeep()) {
    return Fail(Code::kDataLoss, "recover '{}' '{}': {} bytes came back, {} were kept", name_.first,
                name_.second, saved.size(), ToKeep().size());
  }
  if (!state) {
    process_.Exited(KilledNow());
    return {};
  }
  const Json body = state->body;
  if (body.value("state", std::string()) == "ended") {
    process_.Exited({body.value("status", 0U), body.value("at", int64_t{0})});
  }
  return PassConsole(std::move(*state));
}

Status RemoteProcess::Kill(uint32_t signal) const {
  Json call = Call("kill");
  call["signal"] = signal;
  GANTRY_CHECK_OK(Ask(call));
  return {};
}

Status RemoteProcess::ConsoleSignal(uint32_t signal) const {
  Json call = Call("kill");
  call["signal"] = signal;
  call["foreground"] = true;
  GANTRY_CHECK_OK(Ask(call));
  return {};
}

Status RemoteProcess::Delete() {
  const Result<Message> done = Ask(Call("delete"));
  if (!done) {
    return done.error().code == Code::kUnavailable ? Status() : std::unexpected(done.error());
  }
  for (const Json& exit : done->body.value("ended", Json::array())) {
    parts_->link->PassOn(exit);
  }
  return {};
}

}  // namespace gantry::remote
