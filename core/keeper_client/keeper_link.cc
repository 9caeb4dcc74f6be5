// SPDX-License-Identifier: Apache-2.0
//
// Questions to the keeper and their answers, which are matched by a tag; what it says unasked goes
// to the observer in the order in which it came. A keeper may be older than this engine: what it
// cannot do is known from its Welcome, and asking for that is an error here, since it would leave
// out what it does not know of. A message that cannot be sent is no error where nobody waits: the
// engine ends when the link is gone.
#include "core/keeper_client/keeper_link.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/process/process_id.h>

#include "core/keeper_client/spawn_message.h"
#include "core/log/log.h"

namespace gantry::keeper_client {
namespace {

/// The error that an answer carries as code and message.
template <class Answer>
Status StatusOf(const Answer& answer) {
  if (answer.code == 0) {
    return {};
  }
  int sys_errno = 0;
  if constexpr (requires { answer.sys_errno; }) {
    sys_errno = answer.sys_errno;
  }
  return std::unexpected(Error{static_cast<Code>(answer.code), sys_errno, answer.message, {}});
}

/// By what a keeper of before `Welcome::confines` would leave out.
bool IsConfined(const link::Spawn& spawn) {
  return !spawn.seccomp.empty() || spawn.capabilities || spawn.empty_root || spawn.propagation != 0;
}

}  // namespace

/// One question that waits for its answer.
struct KeeperLink::Pending {
  async::OneShot<Result<link::Message>> answer;
};

KeeperLink::KeeperLink(async::Loop& loop, UniqueFd socket, KeeperObserver& observer)
    : observer_(observer),
      channel_(std::make_unique<link::Channel>(
          loop, std::move(socket), [this](link::Message message) { OnMessage(std::move(message)); },
          [this](Error error) { observer_.OnKeeperLost(std::move(error)); })),
      streams_([this](uint64_t connection) {
        IgnoreError(channel_->Send(link::StreamTaken{connection}),
                    "a keeper that is gone ends the engine by itself");
      }) {}

KeeperLink::~KeeperLink() = default;

Status KeeperLink::SayHello(std::chrono::milliseconds answers_within, bool keep_hanging) {
  link::Hello hello;
  hello.version = link::kProtocolVersion;
  hello.pid = getpid();
  hello.answers_within_ms = static_cast<uint64_t>(answers_within.count());
  hello.keep_hanging = keep_hanging;
  hello.tells_recovery = true;
  hello.takes_streams = true;
  return channel_->Send(hello);
}

async::Task<Result<link::Message>> KeeperLink::Ask(uint64_t tag, link::Type type, std::string body,
                                                   std::vector<UniqueFd> fds) {
  Pending pending;
  pending_[tag] = &pending;
  if (Status sent = channel_->Send(type, body, std::move(fds)); !sent) {
    pending_.erase(tag);
    co_return std::unexpected(std::move(sent).error().Within("ask the keeper"));
  }
  Result<link::Message> answer = std::move(co_await pending.answer.Wait());
  co_return answer;
}

async::Task<Result<SpawnedProcess>> KeeperLink::Spawn(SpawnRequest request, std::string group) {
  std::vector<UniqueFd> fds;
  GANTRY_CO_TRY(link::Spawn spawn, ToSpawnMessage(request, fds));
  const std::string path = spawn.path;
  if ((!keeper_confines_ && IsConfined(spawn)) ||
      (!keeper_fills_roots_ && !spawn.root_paths.empty())) {
    co_return Fail(Code::kFailedPrecondition,
                   "start '{}': the keeper that runs is of before it could confine a process as "
                   "this backend asks: gantryctl upgrade --keeper, then gantryctl restart",
                   path);
  }
  spawn.tag = next_tag_++;
  spawn.group = std::move(group);
  GANTRY_CO_TRY(link::Message answer,
                co_await Ask(spawn.tag, link::Type::kSpawn, EncodeProto(spawn), std::move(fds)));
  GANTRY_CO_TRY(const link::Spawned spawned, answer.As<link::Spawned>());
  if (Status status = StatusOf(spawned); !status) {
    co_return std::unexpected(std::move(status).error().Within(Format("start '{}'", path)));
  }
  SpawnedProcess process{{spawned.pid, spawned.start_time}, UniqueFd()};
  if (!answer.fds.empty()) {
    process.pidfd = std::move(answer.fds.front());
  }
  co_return process;
}

async::Task<Result<uint64_t>> KeeperLink::Adopt(HostPid pid, uint64_t start_time,
                                                std::string name) {
  if (!keeper_confines_ && !name.empty()) {
    co_return Fail(Code::kFailedPrecondition,
                   "adopt process {}: the keeper that runs is of before it could give a name to "
                   "one: gantryctl upgrade --keeper, then gantryctl restart",
                   pid.value);
  }
  link::Adopt adopt;
  adopt.name = std::move(name);
  adopt.tag = next_tag_++;
  adopt.pid = pid.value;
  adopt.start_time = start_time;
  GANTRY_CO_TRY(link::Message answer,
                co_await Ask(adopt.tag, link::Type::kAdopt, EncodeProto(adopt), {}));
  GANTRY_CO_TRY(const link::Adopted adopted, answer.As<link::Adopted>());
  GANTRY_CO_CHECK_OK(StatusOf(adopted));
  co_return adopted.start_time;
}

void KeeperLink::AckExit(const ProcessId& process) {
  link::ExitAck ack;
  ack.pid = process.pid;
  ack.start_time = process.start_time;
  IgnoreError(channel_->Send(ack), "a keeper that is gone ends the engine by itself");
}

async::Task<Status> KeeperLink::Put(std::string name, UniqueFd fd) {
  std::vector<ToStore> one;
  one.push_back({std::move(name), std::move(fd)});
  return PutAll(std::move(one));
}

async::Task<Status> KeeperLink::PutAll(std::vector<ToStore> all) {
  link::Put put;
  put.tag = next_tag_++;
  std::vector<UniqueFd> fds;
  for (ToStore& one : all) {
    put.names.push_back(std::move(one.name));
    put.as.push_back(static_cast<uint32_t>(one.as));
    fds.push_back(std::move(one.fd));
  }
  GANTRY_CO_TRY(link::Message answer,
                co_await Ask(put.tag, link::Type::kPut, EncodeProto(put), std::move(fds)));
  GANTRY_CO_TRY(const link::PutDone done, answer.As<link::PutDone>());
  co_return StatusOf(done);
}

async::Task<Result<UniqueFd>> KeeperLink::Take(std::string name) {
  link::Take take;
  take.tag = next_tag_++;
  take.name = std::move(name);
  GANTRY_CO_TRY(link::Message answer,
                co_await Ask(take.tag, link::Type::kTake, EncodeProto(take), {}));
  GANTRY_CO_TRY(const link::Taken taken, answer.As<link::Taken>());
  GANTRY_CO_CHECK_OK(StatusOf(taken));
  if (answer.fds.empty()) {
    co_return Fail(Code::kResourceExhausted, "take descriptor '{}': it did not arrive (EMFILE?)",
                   take.name);
  }
  co_return std::move(answer.fds.front());
}

async::Task<std::vector<Result<UniqueFd>>> KeeperLink::TakeAll(std::vector<std::string> names) {
  std::map<std::string, UniqueFd> taken;
  if (names.size() > 1) {
    link::Take take;
    take.tag = next_tag_++;
    take.name = names.front();
    take.others.assign(names.begin() + 1, names.end());
    auto answer = co_await Ask(take.tag, link::Type::kTake, EncodeProto(take), {});
    if (const auto said = answer ? answer->As<link::Taken>() : Result<link::Taken>()) {
      for (size_t i = 0; i < std::min(said->names.size(), answer->fds.size()); ++i) {
        taken[said->names[i]] = std::move(answer->fds[i]);
      }
    }
  }
  std::vector<Result<UniqueFd>> all;
  for (const std::string& name : names) {
    if (const auto found = taken.find(name); found != taken.end()) {
      all.emplace_back(std::move(found->second));
    } else {
      // This one says why; or the keeper is of before there were several.
      all.push_back(co_await Take(name));
    }
  }
  co_return all;
}

void KeeperLink::Drop(std::string name) {
  link::Drop drop;
  drop.name = std::move(name);
  IgnoreError(channel_->Send(drop), "a keeper that is gone ends the engine by itself");
}

void KeeperLink::ForgetEnded(std::string prefix) {
  link::ForgetEnded forget;
  forget.prefix = std::move(prefix);
  IgnoreError(channel_->Send(forget), "a keeper that is gone ends the engine by itself");
}

async::Task<void> KeeperLink::Sync() {
  // Any question will do: the keeper answers in order, and nothing is stored under
  // no name.
  IgnoreError(co_await Take(std::string()), "that an answer came is all that counts");
}

async::Task<Result<link::InstanceAdded>> KeeperLink::AddMember(std::string address, std::string id,
                                                               std::string bundle) {
  link::AddMember add;
  add.tag = next_tag_++;
  add.address = std::move(address);
  add.id = std::move(id);
  add.bundle = std::move(bundle);
  GANTRY_CO_TRY(link::Message answer,
                co_await Ask(add.tag, link::Type::kAddMember, EncodeProto(add), {}));
  GANTRY_CO_TRY(link::MemberAdded added, answer.As<link::MemberAdded>());
  GANTRY_CO_CHECK_OK(StatusOf(added));
  co_return std::move(added.instance);
}

void KeeperLink::Protect(uint64_t instance, link::LastResort last_resort) {
  link::Protect protect;
  protect.instance = instance;
  protect.last_resort = std::move(last_resort);
  const std::string body = EncodeProto(protect);
  const size_t digest = std::hash<std::string>()(body);
  if (const auto known = protected_.find(instance);
      known != protected_.end() && known->second == digest) {
    return;
  }
  protected_[instance] = digest;
  IgnoreError(channel_->Send(link::Type::kProtect, body),
              "a keeper that is gone ends the engine by itself");
}

void KeeperLink::Forget(link::Forget tombstone) {
  IgnoreError(channel_->Send(tombstone), "a keeper that is gone ends the engine by itself");
}

void KeeperLink::Respond(uint64_t connection, uint32_t stream, std::string payload) {
  link::Response response;
  response.connection = connection;
  response.stream = stream;
  response.payload = std::move(payload);
  IgnoreError(channel_->Send(response), "a keeper that is gone ends the engine by itself");
}

void KeeperLink::AnswerDelete(const link::DeleteDone& done) {
  IgnoreError(channel_->Send(done), "a keeper that is gone ends the engine by itself");
}

void KeeperLink::TellRecovery(const link::Recovering& said) {
  if (hears_recovery_) {
    IgnoreError(channel_->Send(said), "a keeper that is gone ends the engine by itself");
  }
}

void KeeperLink::OnAnswer(uint64_t tag, link::Message message) {
  auto found = pending_.find(tag);
  if (found == pending_.end()) {
    LogWarning("keeper answered question {}, which was not asked", tag);
    return;
  }
  Pending* pending = found->second;
  pending_.erase(found);
  pending->answer.Set(std::move(message));
}

}  // namespace gantry::keeper_client
