// SPDX-License-Identifier: Apache-2.0
#include "core/keeper/keeper.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <gantry/host_process.h>
#include <gantry/toolkit/files/files.h>

#include "core/keeper/note.h"
#include "core/os/fs.h"

namespace gantry::keeper {
namespace {

constexpr std::chrono::minutes kTombstoneLife(10);

}  // namespace

Keeper::Keeper(async::Loop& loop, KeeperOptions options)
    : loop_(loop),
      options_(std::move(options)),
      started_at_ns_(NowNs()),
      fd_store_(options_.stored_descriptors, 0,
                [this](std::string_view owner) { return instances_.GroupOf(owner); }),
      exits_([this](const link::Exit& exit) { TellEngine(exit); },
             [this](const link::Exit& exit) { OnReaped(exit); }),
      front_door_(
          loop, options_.limits, [this] { supervisor_.Ensure(); }, [this] { LookForEnd(); }),
      supervisor_(
          loop, options_.run_dir, options_.engine, options_.child_defaults,
          {.up = [this](link::Channel& engine) { OnEngineUp(engine); },
           .down = [this] { OnEngineDown(); },
           .crashed = [this] { OnEngineCrashed(); },
           .message = [this](link::Message message) { OnEngineMessage(std::move(message)); },
           .pong = [this] { trim_.Tick(); },
           .inquired = [this](link::Channel& engine) { SendInventory(engine); }}),
      spawner_(
          loop, exits_, options_.child_defaults,
          [this](const std::string& address) { return instances_.RlimitsAt(address); },
          [this] { return supervisor_.generation(); },
          [this](uint64_t generation, const link::Spawned& answer, UniqueFd pidfd) {
            return AnswerSpawn(generation, answer, std::move(pidfd));
          }),
      deletes_(
          loop, instances_, exits_, supervisor_, options_.delete_timing,
          [this](const link::Command& command, const std::string& address) {
            return spawner_.Run(command, address);
          },
          [this](uint64_t number) { Remove(number); }),
      control_(loop, std::move(options_.control),
               [this](link::Message message, const Control::Reply& reply) {
                 OnControl(std::move(message), reply);
               }),
      reexec_(loop, {.idle = [this] { return IsIdle(); },
                     .save = [this](uint64_t asker) { return Save(asker); }}),
      service_manager_(loop, options_.service_manager) {}

Keeper::~Keeper() {
  front_door_.EngineDown();
  loop_.Unwatch(signal_watch_);
  loop_.Cancel(forgive_timer_);
  loop_.Cancel(reap_timer_);
  loop_.Cancel(end_timer_);
  for (const auto& [number, instance] : instances_.all()) {
    loop_.Cancel(instance.tombstone_timer);
  }
}

Status Keeper::Start() {
  GANTRY_CHECK_OK(os::BecomeSubreaper());
  GANTRY_TRY(signals_, os::OpenSignalFd({SIGCHLD, SIGTERM, SIGINT}));
  signal_watch_ = loop_.Watch(signals_.get(), EPOLLIN, [this](uint32_t) { OnSignal(); });
  trim_.Touch();
  if (const std::optional<state::Keeper> state = std::exchange(options_.state, std::nullopt)) {
    Restore(*state);
    service_manager_.Ready();
    return {};
  }
  // Sockets of a keeper before this one: nobody answers there any more.
  const std::string sockets = options_.run_dir + "/" + kInstanceSockets;
  GANTRY_CHECK_OK(RemoveTree(sockets));
  GANTRY_CHECK_OK(os::MakeDirs(sockets, 0700));
  GANTRY_CHECK_OK(front_door_.Listen({options_.run_dir + "/" + kOperatorSocket, "", ""}));
  service_manager_.Ready();
  return {};
}

// --- Processes -----------------------------------------------------------------

void Keeper::OnSignal() {
  trim_.Touch();
  signalfd_siginfo info{};
  bool end = false;
  while (read(signals_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    end = end || info.ssi_signo != SIGCHLD;
  }
  Reap();
  asked_to_end_ = asked_to_end_ || end;
  EndIfAsked();
  if (end && !ending_) {
    Note("not ending: {} instances are alive; it ends when all have ended and nobody is connected",
         instances_.all().size() - instances_.tombstones());
  }
  EndWhenIdle();
}

void Keeper::EndIfAsked() {
  if (asked_to_end_ && !ending_ && GuardsNothing()) {
    ending_ = true;
    supervisor_.Shutdown();
  }
}

/// With nobody connected, no connection's end tells a containerd that its containers died; with
/// every end acknowledged, all of them are on record, where the shim's `delete` finds them.
bool Keeper::GuardsNothing() const {
  const auto& all = instances_.all();
  if (std::ranges::all_of(all, [](const auto& one) { return one.second.told.forgotten; })) {
    return true;
  }
  return std::ranges::all_of(
             all, [](const auto& one) { return one.second.told.forgotten || one.second.ended; }) &&
         exits_.watched() == 0 && exits_.kept() == 0 && front_door_.connections() == 0 &&
         spawner_.idle() && deletes_.idle();
}

/// Not from within whatever has changed.
void Keeper::LookForEnd() {
  if (asked_to_end_ && !ending_ && !end_timer_) {
    end_timer_ = loop_.After(std::chrono::milliseconds(0), [this] {
      end_timer_ = {};
      EndIfAsked();
      EndWhenIdle();
    });
  }
}

void Keeper::Reap() {
  loop_.Cancel(reap_timer_);
  if (exits_.ReapSome()) {
    // Whoever lets children die by the thousands gets no more than his part of the time.
    reap_timer_ = loop_.After(std::chrono::milliseconds(0), [this] {
      Reap();
      EndWhenIdle();
    });
  }
  deletes_.OnReaped();
  LookForEnd();
}

void Keeper::EndWhenIdle() {
  if (ending_ && supervisor_.pid() == 0) {
    // Not before: it is given little time from then on, and the engine may need some.
    service_manager_.Stopping();
    loop_.Stop();
  }
}

void Keeper::OnReaped(const link::Exit& exit) {
  spawner_.OnReaped({exit.pid, exit.start_time});
  supervisor_.OnExit(exit);
  reexec_.OnExit(exit);
  for (Instance* const instance : instances_.OfInit({exit.pid, exit.start_time})) {
    instance->ended = link::Deleted{static_cast<uint32_t>(exit.pid),
                                    WaitStatus{exit.wait_status}.code(), exit.exited_at_ns, true};
  }
}

/// The end of its init that came before the last resort that names it.
void Keeper::NoteEnd(Instance& instance) {
  const auto& init = instance.last_resort.init;
  // A last resort without init: there is none yet, or it has ended and that is known.
  if (!init || (instance.ended && instance.ended->pid == static_cast<uint32_t>(init->pid))) {
    return;
  }
  instance.ended.reset();
  if (const auto exit = exits_.Find({init->pid, init->start_time})) {
    instance.ended = link::Deleted{static_cast<uint32_t>(exit->pid),
                                   WaitStatus{exit->wait_status}.code(), exit->exited_at_ns, true};
  }
}

// --- Instances ------------------------------------------------------------------

void Keeper::RemoveOne(uint64_t number, bool with_group) {
  Instance* const instance = instances_.Find(number);
  if (instance == nullptr) {
    return;
  }
  loop_.Cancel(instance->tombstone_timer);
  instances_.Remove(number);
  LookForEnd();
  TellEngine(link::InstanceRemoved{number, with_group});
}

void Keeper::Remove(uint64_t number) {
  const Instance* const instance = instances_.Find(number);
  if (instance == nullptr) {
    return;
  }
  const std::string path = instance->socket_path;
  RemoveOne(number, false);
  if (instances_.AnnouncedAt(path) == 0) {
    for (const Instance* member : instances_.At(path)) {
      RemoveOne(member->told.number, true);
    }
    front_door_.Close(path);
  }
}

void Keeper::OnProtect(const link::Protect& request) {
  Instance* const instance = instances_.Find(request.instance);
  if (instance != nullptr) {
    instances_.SetLastResort(*instance, request.last_resort);
    NoteEnd(*instance);
  }
}

void Keeper::BuryLater(Instance& tombstone) {
  loop_.Cancel(tombstone.tombstone_timer);
  tombstone.tombstone_timer =
      loop_.After(kTombstoneLife, [this, number = tombstone.told.number] { Remove(number); });
}

void Keeper::OnForget(const link::Forget& request) {
  Instance* const instance = instances_.Find(request.instance);
  if (instance == nullptr) {
    return;
  }
  if (instance->member) {
    RemoveOne(request.instance, false);
    return;
  }
  instance->told.forgotten = true;
  instance->told.pid = request.pid;
  instance->told.status = request.status;
  instance->told.exited_at_ns = request.exited_at_ns;
  instance->ended = link::Deleted{request.pid, request.status, request.exited_at_ns, true};
  LookForEnd();
  BuryLater(*instance);
  if (const Instance* surplus = instances_.SurplusTombstone()) {
    Remove(surplus->told.number);
  }
}

void Keeper::OnAddMember(const link::AddMember& request) {
  link::MemberAdded answer;
  answer.tag = request.tag;
  if (auto added = AddMember(request)) {
    answer.instance = std::move(*added);
  } else {
    answer.code = static_cast<int32_t>(added.error().code);
    answer.message = added.error().message;
  }
  AnswerEngine(answer);
}

Result<link::InstanceAdded> Keeper::AddMember(const link::AddMember& request) {
  const std::string prefix = "unix://";
  const std::string path =
      request.address.starts_with(prefix) ? request.address.substr(prefix.size()) : "";
  const auto group = instances_.At(path);
  if (group.empty()) {
    return Fail(Code::kNotFound, "add '{}' to the group at '{}': no such group", request.id,
                request.address);
  }
  link::Announce announce = group.front()->told.announce;
  if (announce.group.empty()) {
    announce.group = announce.id;
  }
  announce.id = request.id;
  announce.bundle = request.bundle;
  if (const Instance* there = instances_.Find(announce.grpc_address, announce.ns, announce.id)) {
    return there->told;
  }
  if (instances_.all().size() >= Instances::kMax) {
    return Fail(Code::kResourceExhausted, "add '{}': {} instances", request.id, Instances::kMax);
  }
  Instance& added = instances_.Add(std::move(announce), path, true);
  deaths_.Enter(added);
  return added.told;
}

}  // namespace gantry::keeper
