// SPDX-License-Identifier: Apache-2.0
//
// Keeper: what the engine is told and what it asks.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/keeper/keeper.h"
#include "core/keeper/note.h"
#include "core/os/spawn.h"

namespace gantry::keeper {
namespace {

constexpr size_t kNamesPerMessage = 256;

/// What an answer's code and message fields say of an error.
template <class Answer>
void SetError(Answer& answer, const Error& error) {
  answer.code = static_cast<int32_t>(error.code);
  answer.message = error.message;
}

Result<int> FdAt(const std::vector<UniqueFd>& fds, uint32_t index) {
  if (index >= fds.size()) {
    return Fail(Code::kInvalidArgument, "spawn: no descriptor {} in a message with {}", index,
                fds.size());
  }
  return fds[index].get();
}

Status SetDescriptors(const link::Spawn& from, const std::vector<UniqueFd>& fds,
                      os::SpawnRequest& to) {
  if (from.fd_targets.size() != fds.size()) {
    return Fail(Code::kInvalidArgument, "spawn '{}': {} descriptors came instead of {}", from.path,
                fds.size(), from.fd_targets.size());
  }
  for (size_t i = 0; i < fds.size(); ++i) {
    if (from.fd_targets[i] >= 0) {
      to.descriptors.push_back({fds[i].get(), from.fd_targets[i]});
    }
  }
  if (from.cgroup_fd) {
    GANTRY_TRY(to.cgroup_fd, FdAt(fds, *from.cgroup_fd));
  }
  if (from.controlling_terminal) {
    GANTRY_TRY(to.controlling_tty_fd, FdAt(fds, *from.controlling_terminal));
    to.new_session = true;
  }
  for (const link::JoinNamespace& join : from.join) {
    GANTRY_TRY(const int fd, FdAt(fds, join.fd_index));
    to.namespaces.push_back({fd, static_cast<int>(join.kind)});
  }
  return {};
}

Result<os::SpawnRequest> ToRequest(const link::Spawn& from, const std::vector<UniqueFd>& fds,
                                   const ChildDefaults& defaults) {
  os::SpawnRequest to;
  to.executable = from.path;
  to.argv = from.argv;
  to.env = from.env;
  to.cwd = from.cwd.empty() ? "/" : from.cwd;
  to.new_session = from.new_session;
  to.cgroup_procs = from.cgroup_procs;
  to.oom_score_adj = from.oom_score_adj.value_or(defaults.oom_score_adj);
  to.limits = {{RLIMIT_NOFILE, defaults.open_files}};
  for (const link::Rlimit& limit : from.rlimits) {
    to.limits.push_back({limit.resource, {limit.soft, limit.hard}});
  }
  if (from.uid) {
    to.uid = *from.uid;
  }
  if (from.gid) {
    to.gid = *from.gid;
  }
  to.no_new_privs = from.no_new_privs;
  GANTRY_CHECK_OK(SetDescriptors(from, fds, to));
  return to;
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
  SendSnapshot(engine);
  front_door_.EngineUp(engine);
  deletes_.EngineUp();
}

void Keeper::SendSnapshot(link::Channel& engine) {
  const auto send = [&](const auto& message) {
    IgnoreError(engine.Send(message), "its end is reported, and the next one asks again");
  };
  send(link::Welcome{link::kProtocolVersion, getpid(), supervisor_.starts(),
                     supervisor_.previous_wait_status(), options_.run_dir});
  for (const auto& [number, instance] : instances_.all()) {
    send(instance.told);
    send(link::Protect{number, instance.plan});
  }
  std::vector<std::string> names = fd_store_.Names();
  for (size_t i = 0; i < names.size(); i += kNamesPerMessage) {
    const auto from = names.begin() + static_cast<ptrdiff_t>(i);
    const auto count = static_cast<ptrdiff_t>(std::min(kNamesPerMessage, names.size() - i));
    send(link::StoredNames{{from, from + count}});
  }
  for (const auto& [process, name] : exits_.names()) {
    send(link::NamedSpawn{name, process.pid, process.start_time});
  }
  for (const link::Exit& exit : exits_.Kept()) {
    send(exit);
  }
  send(link::SnapshotEnd{});
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
  switch (message.type) {
    case Type::kResponse:
      return Dispatch<link::Response>(message, [&](auto& m) { front_door_.Answer(m); });
    case Type::kSpawn:
      return Dispatch<link::Spawn>(message, [&](auto& m) { OnSpawn(m, message.fds); });
    case Type::kAdopt:
      return Dispatch<link::Adopt>(message, [&](auto& m) { OnAdopt(m); });
    case Type::kExitAck:
      return Dispatch<link::ExitAck>(message,
                                     [&](auto& m) { exits_.Acknowledge({m.pid, m.start_time}); });
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
    case Type::kDeleteDone:
      return Dispatch<link::DeleteDone>(message, [&](auto& m) { deletes_.EngineDone(m); });
    default:
      Note("message {} of the engine: unknown", static_cast<int>(message.type));
  }
}

// --- What it asks --------------------------------------------------------------------

void Keeper::OnSpawn(const link::Spawn& request, const std::vector<UniqueFd>& fds) {
  link::Spawned answer;
  answer.tag = request.tag;
  const auto spawn = [&]() -> Result<os::SpawnResult> {
    if (request.name.size() > link::kMaxStoredName) {
      return Fail(Code::kInvalidArgument, "spawn '{}': its name has {} bytes", request.path,
                  request.name.size());
    }
    GANTRY_TRY(const os::SpawnRequest ready, ToRequest(request, fds, options_.child_defaults));
    return os::SpawnProcess(ready);
  };
  auto child = spawn();
  std::vector<UniqueFd> out;
  if (child) {
    answer.pid = child->process.pid;
    answer.start_time = child->process.start_time;
    exits_.Watch(child->process, request.name);
    out.push_back(std::move(child->pidfd));
  } else {
    SetError(answer, child.error());
    answer.sys_errno = child.error().sys_errno;
  }
  AnswerEngine(answer, std::move(out));
}

void Keeper::OnAdopt(const link::Adopt& request) {
  link::Adopted answer;
  answer.tag = request.tag;
  if (const auto adopted = exits_.Adopt({request.pid, request.start_time})) {
    answer.start_time = adopted->start_time;
  } else {
    SetError(answer, adopted.error());
  }
  AnswerEngine(answer);
}

void Keeper::OnPut(const link::Put& request, std::vector<UniqueFd> fds) {
  link::PutDone answer;
  answer.tag = request.tag;
  UniqueFd fd = fds.size() == 1 ? std::move(fds.front()) : UniqueFd();
  if (Status put = fd_store_.Put(request.name, std::move(fd)); !put) {
    SetError(answer, put.error());
  }
  AnswerEngine(answer);
}

void Keeper::OnTake(const link::Take& request) {
  link::Taken answer;
  answer.tag = request.tag;
  std::vector<UniqueFd> out;
  if (auto fd = fd_store_.Take(request.name)) {
    out.push_back(std::move(*fd));
  } else {
    SetError(answer, fd.error());
  }
  AnswerEngine(answer, std::move(out));
}

}  // namespace gantry::keeper
