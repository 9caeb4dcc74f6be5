// SPDX-License-Identifier: Apache-2.0
#include "core/keeper/deletes.h"

#include <algorithm>
#include <utility>

#include <gantry/host_process.h>

#include "core/keeper/last_resort.h"
#include "core/keeper/note.h"
#include "core/os/process.h"

namespace gantry::keeper {

Deletes::Deletes(async::Loop& loop, Instances& instances, Exits& exits, Supervisor& supervisor,
                 Timing timing, Start start, std::function<void(uint64_t)> removed)
    : loop_(loop),
      instances_(instances),
      exits_(exits),
      supervisor_(supervisor),
      timing_(timing),
      start_(std::move(start)),
      removed_(std::move(removed)) {}

Deletes::~Deletes() {
  for (const auto& [number, operation] : operations_) {
    loop_.Cancel(operation.timer);
  }
}

void Deletes::Begin(Instance& instance, Done done) {
  const uint64_t number = instance.told.number;
  if (instance.told.forgotten) {
    const link::Deleted answer = Outcome(instance);
    removed_(number);
    done(answer);
    return;
  }
  Operation& operation = operations_[number];
  operation.waiting.push_back(std::move(done));
  if (operation.waiting.size() > 1) {
    return;
  }
  operation.tag = next_tag_++;
  operation.since = loop_.Now();
  if (instance.told.left_out) {
    // No engine has it.
    LastResort(number);
    return;
  }
  switch (supervisor_.state()) {
    case link::EngineState::kUp:
      Ask(number, operation);
      break;
    case link::EngineState::kStarting:
      operation.timer = loop_.After(timing_.engine_starts, [this, number] { LastResort(number); });
      break;
    default:
      LastResort(number);
  }
}

void Deletes::Ask(uint64_t number, Operation& operation) {
  link::Channel* const engine = supervisor_.channel();
  if (engine == nullptr) {
    LastResort(number);
    return;
  }
  IgnoreError(engine->Send(link::DeleteCall{operation.tag, number}), "the timer takes over");
  const auto passed = loop_.Now() - operation.since;
  loop_.Cancel(operation.timer);
  operation.timer =
      loop_.After(timing_.engine_answers - passed, [this, number] { LastResort(number); });
}

void Deletes::EngineUp() {
  std::vector<uint64_t> open;
  for (const auto& [number, operation] : operations_) {
    if (!operation.killing) {
      open.push_back(number);
    }
  }
  for (const uint64_t number : open) {
    Ask(number, operations_.at(number));
  }
}

void Deletes::EngineDone(const link::DeleteDone& done) {
  const auto found = std::ranges::find_if(
      operations_, [&](const auto& item) { return item.second.tag == done.tag; });
  if (found == operations_.end() || found->second.killing) {
    return;
  }
  const uint64_t number = found->first;
  if (done.code != 0) {
    Note("delete of instance {}: the engine says: {}", number, done.message);
    LastResort(number);
    return;
  }
  Finish(number, {done.pid, done.status, done.exited_at_ns, true});
}

void Deletes::LastResort(uint64_t number) {
  const Instance* const instance = instances_.Find(number);
  Operation& operation = operations_.at(number);
  loop_.Cancel(operation.timer);
  operation.killing = true;
  operation.kill_until = loop_.Now() + timing_.killing;
  if (instance != nullptr) {
    Note("delete of '{}' without the engine", instance->told.announce.id);
    if (std::ranges::any_of(EndingWith(*instance), [](const Instance* one) {
          return one->last_resort.cleanup.has_value();
        })) {
      operation.kill_until = std::max(operation.kill_until,
                                      operation.since + timing_.engine_answers + timing_.killing);
    }
  }
  Pass(number);
}

void Deletes::Pass(uint64_t number) {
  Instance* const instance = instances_.Find(number);
  Operation& operation = operations_.at(number);
  const bool alive = instance != nullptr && EndAll(operation, *instance);
  if (alive && loop_.Now() < operation.kill_until) {
    // cgroup v1 has no event for "empty"; the end of a child makes a pass, too.
    operation.timer = loop_.After(timing_.between_passes, [this, number] { Pass(number); });
    return;
  }
  if (alive) {
    GiveUp(operation, *instance);
    Note("delete of '{}': some processes or cgroups do not go", instance->told.announce.id);
  }
  // Its end is among those that have not been collected yet.
  constexpr int kMostTurns = 64;
  for (int i = 0; i < kMostTurns && exits_.ReapSome(); ++i) {
  }
  Finish(number, instance == nullptr ? link::Deleted{link::kNoPid, os::kKilledStatus, NowNs(), true}
                                     : Outcome(*instance));
}

std::vector<const Instance*> Deletes::EndingWith(const Instance& instance) {
  std::vector<const Instance*> all = {&instance};
  if (!instance.member && instances_.AnnouncedAt(instance.socket_path) == 1) {
    for (const Instance* other : instances_.At(instance.socket_path)) {
      if (other->member) {
        all.push_back(other);
      }
    }
  }
  return all;
}

bool Deletes::EndAll(Operation& operation, const Instance& instance) {
  bool alive = false;
  for (const Instance* one : EndingWith(instance)) {
    const CleanupCalls calls = {
        .spawn = [this, address = one->told.address](
                     const link::Command& command) { return start_(command, address); },
        .failed = [](const Error& error) { Note("{}", error.message); }};
    Ending& ending = operation.endings.try_emplace(one->told.number, calls).first->second;
    alive = ending.GoOn(one->last_resort) || alive;
  }
  return alive;
}

void Deletes::GiveUp(Operation& operation, const Instance& instance) {
  for (const Instance* one : EndingWith(instance)) {
    if (const auto ending = operation.endings.find(one->told.number);
        ending != operation.endings.end()) {
      ending->second.GiveUp(one->last_resort);
    }
  }
}

void Deletes::OnReaped() {
  std::vector<uint64_t> due;
  for (const auto& [number, operation] : operations_) {
    if (operation.killing && operation.timer) {
      due.push_back(number);
    }
  }
  for (const uint64_t number : due) {
    const auto found = operations_.find(number);
    if (found != operations_.end()) {
      loop_.Cancel(std::exchange(found->second.timer, {}));
      found->second.timer =
          loop_.After(std::chrono::milliseconds(0), [this, number] { Pass(number); });
    }
  }
}

link::Deleted Deletes::Outcome(const Instance& instance) const {
  if (instance.ended) {
    return *instance.ended;
  }
  link::Deleted answer{link::kNoPid, os::kKilledStatus, NowNs(), true};
  if (const auto& init = instance.last_resort.init) {
    answer.pid = static_cast<uint32_t>(init->pid);
    if (const auto exit = exits_.Find({init->pid, init->start_time})) {
      answer.status = WaitStatus{exit->wait_status}.code();
      answer.exited_at_ns = exit->exited_at_ns;
    }
  }
  return answer;
}

void Deletes::Finish(uint64_t number, const link::Deleted& answer) {
  auto operation = operations_.extract(number);
  loop_.Cancel(operation.mapped().timer);
  removed_(number);
  for (const Done& done : operation.mapped().waiting) {
    done(answer);
  }
}

}  // namespace gantry::keeper
