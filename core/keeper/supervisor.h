// SPDX-License-Identifier: Apache-2.0
//
// The engine as a process: start, restart after a crash, upgrade.
//
// Restart: at once the first time, then after 50 ms, doubling to 5 s, or to 400 ms where
// the one that ended had said Hello; an engine that was in charge for 1 s counts as healthy and the
// row begins anew.
//
// Hang: one whose loop does not answer in the time that it has given in its Hello is
// ended, and the next one started; or, if it wants that, only noted.
//
// Upgrade: the new engine starts beside the old one, is told what there is, and loads what
// it needs, or says why it cannot. When it says Hello, the old one is ended (SIGTERM, SIGKILL after
// 2 s), and only when it is gone the new one gets the state: no two engines act at the same time.
// If the new one ends before Hello or is silent for 10 s, the old one was never disturbed. If it
// ends within 10 s of being in charge, the next start is the old path again, unless the operator
// wants no fallback.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/process/process_id.h>

#include "core/async/loop.h"
#include "core/keeper/child_defaults.h"
#include "core/keeper/heartbeat.h"
#include "core/keeper/state.h"
#include "core/link/channel.h"
#include "core/os/process.h"

namespace gantry::keeper {

/// Thread: the keeper's only one. Blocks: never (starting: until exec).
class Supervisor {
 public:
  struct Events {
    /// The engine said Hello: it is in charge.
    std::function<void(link::Channel&)> up;
    /// It is no longer.
    std::function<void()> down;
    /// After `down`: it crashed, or was ended since it hung. Not where somebody ended it.
    std::function<void()> crashed;
    std::function<void(link::Message)> message;
    /// It was asked whether it turns its loop, and answered.
    std::function<void()> pong;
    /// An engine that is to take another's place asks what there is.
    std::function<void(link::Channel&)> inquired;
  };

  using UpgradeDone = std::function<void(Result<link::Upgraded>)>;

  Supervisor(async::Loop& loop, std::string run_dir, std::string engine, ChildDefaults defaults,
             Events events);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// Starts the engine if none was started yet. Again: nothing.
  void Ensure();

  /// Errors (through `done`): kFailedPrecondition.
  void Upgrade(const link::Upgrade& request, UpgradeDone done);

  /// A child ended; it may have been an engine.
  void OnExit(const link::Exit& exit);

  /// Ends the engine for good: no restart any more.
  void Shutdown();

  /// No engine is on its way, in or out, and that in charge is between two messages.
  bool idle() const;

  /// Only while idle.
  state::Supervisor Save() const;
  /// Takes over the engine in charge, which does not notice, or starts one where there was none.
  void Restore(const state::Supervisor& state);

  /// The link of the engine in charge; null while there is none.
  link::Channel* channel() const;

  /// Where answers to an engine's messages go: also that of one on its way out.
  link::Channel* answer_channel() const { return current_ ? current_->channel.get() : nullptr; }

  link::EngineState state() const;

  pid_t pid() const { return current_ ? current_->process.pid : 0; }

  uint64_t starts() const { return kept_.starts; }

  /// How often an engine was found hanging.
  uint64_t hangs() const { return kept_.hangs; }

  /// How often none was in charge between two that were, and for how long in all.
  uint64_t gaps() const { return kept_.gaps; }

  int64_t gap_ns() const { return kept_.gap_ns; }

  /// Counts the engines that were in charge: tells an answer's engine from a later one.
  uint64_t generation() const { return kept_.generation; }

  const std::string& path() const { return kept_.path; }

  /// The path that the last upgrade was to, where it was taken back; and how that engine ended.
  const std::string& fell_back_from() const { return kept_.fell_back_from; }

  int fell_back_wait_status() const { return kept_.fell_back_wait_status; }

  /// The engine in charge says what it takes up.
  bool tells_recovery() const { return current_ && current_->tells_recovery; }

  /// The engine in charge takes streams.
  bool takes_streams() const { return current_ && current_->takes_streams; }

  std::optional<int> previous_wait_status() const { return kept_.previous_wait_status; }

 private:
  struct Engine {
    std::string path;
    ProcessId process;
    UniqueFd pidfd;
    std::unique_ptr<link::Channel> channel;
    bool said_hello = false;
    /// Why it will not take another's place.
    std::string refusal;
    bool in_charge = false;
    /// Asked to end: gets nothing new, but what it still says counts.
    bool retiring = false;
    std::chrono::milliseconds answers_within{};
    bool keep_hanging = false;
    bool tells_recovery = false;
    bool takes_streams = false;
    /// It was ended for that.
    bool hung = false;
    /// Where it ends soon, it is started again.
    bool no_fallback = false;
    async::TimePoint in_charge_since;
    async::TimerId timer{};
  };

  Result<std::unique_ptr<Engine>> Start(const std::string& path, bool standby);
  void Connect(Engine& engine, UniqueFd link);
  void StartCurrent();
  void Restart();
  void OnMessage(Engine* engine, link::Message message);
  void OnStandby(Engine& engine, const link::Message& message);
  void OnHello(Engine* engine, const link::Message& message);
  void OnLinkClosed(Engine* engine);
  void TakeCharge();
  void LeaveCharge(Engine& engine);
  void RetireCurrent();
  void Bury(int wait_status);
  void FallBack(int wait_status);
  void Promote();
  void CurrentEnded(int wait_status);
  void NextEnded(const std::string& why);
  void OnSilent(std::chrono::milliseconds time);
  void Kill(Engine& engine, int signal, const std::string& why);

  async::Loop& loop_;
  std::string run_dir_;
  ChildDefaults defaults_;
  Events events_;
  /// Without its `engine`: that is `current_`.
  state::Supervisor kept_;
  std::unique_ptr<Engine> current_;
  std::unique_ptr<Engine> next_;
  UpgradeDone upgrade_done_;
  bool shutdown_ = false;
  async::TimerId restart_timer_{};
  /// Of the engine in charge.
  Heartbeat heartbeat_;
};

/// A file to append to, made anew when it has grown beyond `max_bytes` (the old one gets
/// the suffix ".1"). Errors: the errno's.
Result<UniqueFd> OpenLog(const std::string& path, int64_t max_bytes);

}  // namespace gantry::keeper
