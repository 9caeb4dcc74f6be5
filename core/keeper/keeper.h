// SPDX-License-Identifier: Apache-2.0
//
// The keeper: what must not end while the node's sandboxes live. It holds
// containerd's connections, collects every exit, keeps descriptors, spawns for the
// engine, and sees to it that there is an engine. Each of these is a class of
// its own; this one lets them talk to each other.
//
// One thread, one loop, no blocking call, and every list has a limit.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "core/async/idle_trim.h"
#include "core/async/loop.h"
#include "core/keeper/control.h"
#include "core/keeper/deaths.h"
#include "core/keeper/deletes.h"
#include "core/keeper/exits.h"
#include "core/keeper/fd_store.h"
#include "core/keeper/front_door.h"
#include "core/keeper/instances.h"
#include "core/keeper/reexec.h"
#include "core/keeper/service_manager.h"
#include "core/keeper/spawner.h"
#include "core/keeper/state.h"
#include "core/keeper/supervisor.h"

namespace gantry::keeper {

struct KeeperOptions {
  std::string run_dir;
  /// Absolute path of gantryd.
  std::string engine;
  /// Already listening at run_dir/keeper.sock.
  UniqueFd control;
  Limits limits;
  Deletes::Timing delete_timing;
  /// So many are stored for engines, a quarter of them for one pod.
  size_t stored_descriptors = link::kMaxStoredDescriptors;
  /// Deaths are forgotten when an engine has lasted so long.
  std::chrono::milliseconds forgiven_after = std::chrono::minutes(1);
  ChildDefaults child_defaults;
  state::ServiceManager service_manager;
  /// The lock on run_dir/keeper.alive.
  UniqueFd alive;
  /// Of the program whose place this one takes. Its descriptors are taken, but those above.
  std::optional<state::Keeper> state;
};

/// Thread: the one that runs the loop.
class Keeper {
 public:
  Keeper(async::Loop& loop, KeeperOptions options);
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  /// Opens the operator's socket and takes over children. SIGCHLD must be
  /// blocked, SIGTERM too. Errors: the errno's.
  Status Start();

 private:
  // Control socket.
  void OnControl(link::Message message, const Control::Reply& reply);
  Result<link::Announced> OnAnnounce(link::Announce announce);
  Status PlaceSocket(const std::string& path, const link::Announce& announce);
  /// Deletes what containerd has forgotten, having been killed at the wrong moment:
  /// nobody is connected and the bundle is gone. Looks at a few, and at the next ones
  /// the next time.
  void CollectForsaken();
  void OnDelete(const link::Delete& request, const Control::Reply& reply);
  void OnUpgrade(const link::Upgrade& request, const Control::Reply& reply);
  void OnUpgradeKeeper(const link::UpgradeKeeper& request, const Control::Reply& reply);
  link::KeeperStatus StatusNow(bool brief) const;

  // Engine link.
  void OnEngineUp(link::Channel& engine);
  void OnEngineDown();
  void OnEngineCrashed();
  void OnRecovering(const link::Recovering& said);
  void LeaveOut();
  void ForgiveLater();
  void Forgive();
  void SendSnapshot(link::Channel& engine);
  void SendInventory(link::Channel& engine) const;
  void OnEngineMessage(link::Message message);
  template <class T, class Handler>
  void Dispatch(const link::Message& message, Handler&& handler);
  bool AnswerSpawn(uint64_t generation, const link::Spawned& answer, UniqueFd pidfd);
  void OnAdopt(const link::Adopt& request);
  void OnPut(const link::Put& request, std::vector<UniqueFd> fds);
  Status PutOne(const std::string& name, UniqueFd fd, link::StoreAs as);
  void OnTake(const link::Take& request);
  void OnProtect(const link::Protect& request);
  void OnForget(const link::Forget& request);
  void BuryLater(Instance& tombstone);
  void OnAddMember(const link::AddMember& request);
  Result<link::InstanceAdded> AddMember(const link::AddMember& request);

  // Another program in this one's place (keeper_state.cc).
  bool IsIdle() const;
  state::Keeper Save(uint64_t asker) const;
  void Restore(const state::Keeper& state);

  // Processes.
  void OnSignal();
  /// Collects children, now and as long as there are more.
  void Reap();
  /// SIGTERM came, and nothing is left for which this process is needed.
  void EndIfAsked();
  void LookForEnd();
  bool GuardsNothing() const;
  void EndWhenIdle();
  void OnReaped(const link::Exit& exit);
  void NoteEnd(Instance& instance);

  void Remove(uint64_t number);
  void RemoveOne(uint64_t number, bool with_group);
  template <class T>
  void TellEngine(const T& message, std::vector<UniqueFd> fds = {});
  template <class T>
  void AnswerEngine(const T& message, std::vector<UniqueFd> fds = {});

  async::Loop& loop_;
  KeeperOptions options_;
  int64_t started_at_ns_;
  /// The last instance that CollectForsaken has seen.
  uint64_t looked_at_ = 0;
  FdStore fd_store_;
  Instances instances_;
  Deaths deaths_{instances_};
  Exits exits_;
  FrontDoor front_door_;
  Supervisor supervisor_;
  Spawner spawner_;
  Deletes deletes_;
  Control control_;
  Reexec reexec_;
  ServiceManager service_manager_;
  /// So many programs had this process before.
  uint64_t upgrades_ = 0;
  async::TimerId forgive_timer_{};
  async::TimerId reap_timer_{};
  UniqueFd signals_;
  async::WatchId signal_watch_{};
  async::IdleTrim trim_{loop_};
  /// SIGTERM or SIGINT came, and no container was announced since.
  bool asked_to_end_ = false;
  async::TimerId end_timer_{};
  /// There is nothing to guard any more.
  bool ending_ = false;
};

/// The names of the operator's socket and of the shims' folder in the run directory.
inline constexpr char kOperatorSocket[] = "gantry.sock";
inline constexpr char kInstanceSockets[] = "s";

}  // namespace gantry::keeper
