// SPDX-License-Identifier: Apache-2.0
//
// Keeper: what the engine is told and what it asks.
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/keeper/keeper.h"
#include "core/keeper/note.h"
#include "core/os/fifo.h"

namespace gantry::keeper {
namespace {

constexpr size_t kMostPerMessage = 256;

/// Parts of at most so many.
template <class T>
std::vector<std::vector<T>> InParts(const std::vector<T>& all) {
  std::vector<std::vector<T>> parts;
  for (size_t i = 0; i < all.size(); i += kMostPerMessage) {
    const auto from = all.begin() + static_cast<ptrdiff_t>(i);
    parts.emplace_back(from,
                       from + static_cast<ptrdiff_t>(std::min(kMostPerMessage, all.size() - i)));
  }
  return parts;
}

/// What an answer's code and message fields say of an error.
template <class Answer>
void SetError(Answer& answer, const Error& error) {
  answer.code = static_cast<int32_t>(error.code);
  answer.message = error.message;
}

}  // namespace

template <class T>
void Keeper::TellEngine(const T& message, std::vector<UniqueFd> fds) {
  if (link::Channel* const engine = supervisor_.channel()) {
    IgnoreError(engine->Send(message, std::move(fds)), "the next engine gets it in its snapshot");
  }
}

template void Keeper::TellEngine(const link::Exit&, std::vector<UniqueFd>);
template void Keeper::TellEngine(const link::InstanceAdded&, std::vector<UniqueFd>);
template void Keeper::TellEngine(const link::InstanceRemoved&, std::vector<UniqueFd>);

template <class T>
void Keeper::AnswerEngine(const T& message, std::vector<UniqueFd> fds) {
  if (link::Channel* const engine = supervisor_.answer_channel()) {
    IgnoreError(engine->Send(message, std::move(fds)), "then nobody waits for it");
  }
}

template void Keeper::AnswerEngine(const link::MemberAdded&, std::vector<UniqueFd>);

// --- Hand-over ---------------------------------------------------------------------

void Keeper::OnEngineUp(link::Channel& engine) {
  deaths_.EngineUp();
  LeaveOut();
  SendSnapshot(engine);
  front_door_.EngineUp(engine, supervisor_.tells_recovery(), supervisor_.takes_streams());
  deletes_.EngineUp();
  ForgiveLater();
}

void Keeper::OnEngineDown() {
  loop_.Cancel(forgive_timer_);
  front_door_.EngineDown();
}

void Keeper::OnEngineCrashed() {
  const bool recovering = deaths_.recovering();
  deaths_.EngineCrashed();
  front_door_.EngineCrashed(recovering);
}

void Keeper::OnRecovering(const link::Recovering& said) {
  deaths_.OnRecovering(said);
  if (said.finished) {
    front_door_.Recovered();
  }
}

/// Calls to what is left out are answered here.
void Keeper::LeaveOut() {
  for (const auto& [number, instance] : instances_.all()) {
    if (!instance.told.forgotten) {
      front_door_.LeaveOut(instance.socket_path,
                           instance.told.left_out ? Deaths::Refusal(instance) : std::string());
    }
  }
}

void Keeper::ForgiveLater() {
  loop_.Cancel(forgive_timer_);
  forgive_timer_ = loop_.After(options_.forgiven_after, [this] { Forgive(); });
}

void Keeper::Forgive() {
  deaths_.Forgive();
  front_door_.Forgive();
}

void Keeper::SendSnapshot(link::Channel& engine) {
  const auto send = [&](const auto& message) {
    IgnoreError(engine.Send(message), "its end is reported, and the next one asks again");
  };
  send(link::Welcome{link::kProtocolVersion, getpid(), supervisor_.starts(),
                     supervisor_.previous_wait_status(), options_.run_dir, true, true, true});
  for (const auto& [number, instance] : instances_.all()) {
    send(instance.told);
    send(link::Protect{number, instance.last_resort});
  }
  for (std::vector<std::string>& names : InParts(fd_store_.Names())) {
    send(link::StoredNames{std::move(names)});
  }
  for (std::vector<link::ProcessRef>& processes : InParts(exits_.Watched())) {
    send(link::Watched{std::move(processes)});
  }
  for (const auto& [process, name] : exits_.names()) {
    send(link::NamedSpawn{name, process.pid, process.start_time});
  }
  for (std::vector<link::EndedName>& ended : InParts(exits_.ended_names().All())) {
    send(link::EndedNames{std::move(ended)});
  }
  for (const link::Exit& exit : exits_.Kept()) {
    send(exit);
  }
  send(link::SnapshotEnd{});
}

void Keeper::SendInventory(link::Channel& engine) const {
  constexpr size_t kBundlesPerMessage = 256;
  link::Inventory part;
  for (const auto& [number, instance] : instances_.all()) {
    if (part.bundles.size() == kBundlesPerMessage) {
      part.more = true;
      IgnoreError(engine.Send(part), "its end is reported");
      part = {};
    }
    if (!instance.told.forgotten) {
      part.bundles.push_back(instance.told.announce.bundle);
    }
  }
  IgnoreError(engine.Send(part), "its end is reported");
}

template <class T, class Handler>
void Keeper::Dispatch(const link::Message& message, Handler&& handler) {
  if (auto request = message.As<T>()) {
    handler(*request);
  } else {
    Note("message {} of the engine: {}", static_cast<int>(message.type), request.error().message);
  }
}

void Keeper::OnEngineMessage(link::Message message) {
  using link::Type;
  trim_.Touch();
  switch (message.type) {
    case Type::kResponse:
      return Dispatch<link::Response>(message, [&](auto& m) { front_door_.Answer(m); });
    case Type::kStreamTaken:
      return Dispatch<link::StreamTaken>(message, [&](auto& m) { front_door_.Taken(m); });
    case Type::kSpawn:
      return Dispatch<link::Spawn>(
          message, [&](auto& m) { spawner_.Begin(supervisor_.generation(), m, message.fds); });
    case Type::kAdopt:
      return Dispatch<link::Adopt>(message, [&](auto& m) { OnAdopt(m); });
    case Type::kExitAck:
      return Dispatch<link::ExitAck>(message, [&](auto& m) {
        exits_.Acknowledge({m.pid, m.start_time});
        LookForEnd();
      });
    case Type::kForgetEnded:
      return Dispatch<link::ForgetEnded>(message, [&](auto& m) { exits_.ForgetEnded(m.prefix); });
    case Type::kPut:
      return Dispatch<link::Put>(message, [&](auto& m) { OnPut(m, std::move(message.fds)); });
    case Type::kTake:
      return Dispatch<link::Take>(message, [&](auto& m) { OnTake(m); });
    case Type::kDrop:
      return Dispatch<link::Drop>(message, [&](auto& m) { fd_store_.Drop(m.name); });
    case Type::kProtect:
      return Dispatch<link::Protect>(message, [&](auto& m) { OnProtect(m); });
    case Type::kForget:
      return Dispatch<link::Forget>(message, [&](auto& m) { OnForget(m); });
    case Type::kAddMember:
      return Dispatch<link::AddMember>(message, [&](auto& m) { OnAddMember(m); });
    case Type::kRecovering:
      return Dispatch<link::Recovering>(message, [&](auto& m) { OnRecovering(m); });
    case Type::kDeleteDone:
      return Dispatch<link::DeleteDone>(message, [&](auto& m) { deletes_.EngineDone(m); });
    default:
      Note("message {} of the engine: unknown", static_cast<int>(message.type));
  }
}

// --- What it asks --------------------------------------------------------------------

/// Whether the engine that asked is still the one that listens.
bool Keeper::AnswerSpawn(uint64_t generation, const link::Spawned& answer, UniqueFd pidfd) {
  if (generation != supervisor_.generation() || supervisor_.answer_channel() == nullptr) {
    return false;
  }
  std::vector<UniqueFd> fds;
  if (pidfd) {
    fds.push_back(std::move(pidfd));
  }
  AnswerEngine(answer, std::move(fds));
  return true;
}

void Keeper::OnAdopt(const link::Adopt& request) {
  link::Adopted answer;
  answer.tag = request.tag;
  if (request.name.size() > link::kMaxStoredName) {
    SetError(answer, Fail(Code::kInvalidArgument, "adopt process {}: its name has {} bytes",
                          request.pid, request.name.size())
                         .error());
  } else if (const auto adopted = exits_.Adopt({request.pid, request.start_time}, request.name)) {
    answer.start_time = adopted->start_time;
  } else {
    SetError(answer, adopted.error());
  }
  AnswerEngine(answer);
}

void Keeper::OnPut(const link::Put& request, std::vector<UniqueFd> fds) {
  link::PutDone answer;
  answer.tag = request.tag;
  fds.resize(request.names.size());
  for (size_t i = 0; i < fds.size(); ++i) {
    const uint32_t as = i < request.as.size() ? request.as[i] : 0;
    if (Status put = PutOne(request.names[i], std::move(fds[i]), link::StoreAs{as}); !put) {
      SetError(answer, put.error());
      break;
    }
  }
  AnswerEngine(answer);
}

Status Keeper::PutOne(const std::string& name, UniqueFd fd, link::StoreAs as) {
  if (as != link::StoreAs::kItself) {
    if (!os::IsFifo(fd.get())) {
      return Fail(Code::kInvalidArgument, "store descriptor '{}': it names no fifo", name);
    }
    GANTRY_TRY(fd, as == link::StoreAs::kReadEnd ? os::OpenPipeEnd(fd.get(), os::PipeEnd::kRead)
                                                 : os::OpenWriteEnd(fd.get()));
  }
  return fd_store_.Put(name, std::move(fd));
}

void Keeper::OnTake(const link::Take& request) {
  link::Taken answer;
  answer.tag = request.tag;
  std::vector<UniqueFd> out;
  const auto take = [&](const std::string& name) -> Status {
    GANTRY_TRY(UniqueFd fd, fd_store_.Take(name));
    out.push_back(std::move(fd));
    answer.names.push_back(name);
    return {};
  };
  if (const Status first = take(request.name); !first) {
    SetError(answer, first.error());
  }
  for (const std::string& other : request.others) {
    if (out.size() < link::kMaxFds) {
      IgnoreError(take(other), "the answer does not name it");
    }
  }
  AnswerEngine(answer, std::move(out));
}

}  // namespace gantry::keeper
