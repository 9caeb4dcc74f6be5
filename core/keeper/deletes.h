// SPDX-License-Identifier: Apache-2.0
//
// containerd's `delete`: answered within 4 s, come what may. (containerd gives up
// after 5 s, and then the container stays, with nobody owning it.)
//
//   engine up        -> it is asked, and has 3 s
//   engine starting  -> it has 1 s to come up, and is then asked
//   else, or silent, or unable -> last resort: this process kills by the last resort
//                       that the engine left (Protect), pass by pass until all is dead, 0.8 s
//                       at most, or, with a command of the OCI runtime's, what is left of all
//                       that time, and reports how the instance's init ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "core/async/loop.h"
#include "core/keeper/ending.h"
#include "core/keeper/exits.h"
#include "core/keeper/instances.h"
#include "core/keeper/supervisor.h"
#include "core/link/messages.h"

namespace gantry::keeper {

/// Thread: the keeper's only one. Blocks: never.
class Deletes {
 public:
  using Done = std::function<void(const link::Deleted&)>;

  struct Timing {
    std::chrono::milliseconds engine_answers{3000};
    std::chrono::milliseconds engine_starts{1000};
    std::chrono::milliseconds between_passes{20};
    std::chrono::milliseconds killing{800};
  };

  /// Starts a last resort's command, for the group at an address.
  using Start = std::function<Result<os::PendingSpawn>(const link::Command&, const std::string&)>;

  /// `removed`: the instance is to be forgotten by everybody; called before `Done`.
  Deletes(async::Loop& loop, Instances& instances, Exits& exits, Supervisor& supervisor,
          Timing timing, Start start, std::function<void(uint64_t)> removed);
  Deletes(const Deletes&) = delete;
  Deletes& operator=(const Deletes&) = delete;
  ~Deletes();

  /// Again, for an instance that is being deleted: both get the same answer.
  void Begin(Instance& instance, Done done);

  /// To be called when an engine took over: it is asked what is open.
  void EngineUp();
  void EngineDone(const link::DeleteDone& done);
  /// Some child ended.
  void OnReaped();

  /// None is under way.
  bool idle() const { return operations_.empty(); }

 private:
  struct Operation {
    uint64_t tag = 0;
    std::vector<Done> waiting;
    async::TimerId timer{};
    bool killing = false;
    async::TimePoint since;
    async::TimePoint kill_until;
    /// By number: of the instance and of its group's members that end with it.
    std::map<uint64_t, Ending> endings;
  };

  void Ask(uint64_t number, Operation& operation);
  void LastResort(uint64_t number);
  void Pass(uint64_t number);
  /// The instance, and those that end with it.
  std::vector<const Instance*> EndingWith(const Instance& instance);
  bool EndAll(Operation& operation, const Instance& instance);
  void GiveUp(Operation& operation, const Instance& instance);
  link::Deleted Outcome(const Instance& instance) const;
  void Finish(uint64_t number, const link::Deleted& answer);

  async::Loop& loop_;
  Instances& instances_;
  Exits& exits_;
  Supervisor& supervisor_;
  Timing timing_;
  Start start_;
  std::function<void(uint64_t)> removed_;
  uint64_t next_tag_ = 1;
  std::map<uint64_t, Operation> operations_;
};

}  // namespace gantry::keeper
