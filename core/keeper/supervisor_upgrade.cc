// SPDX-License-Identifier: Apache-2.0
//
// Supervisor: a new engine in the place of another, and the supervisor itself in a new keeper.
#include <signal.h>

#include <chrono>
#include <utility>

#include <gantry/toolkit/process/pidfd.h>

#include "core/keeper/note.h"
#include "core/keeper/supervisor.h"
#include "core/link/run_dir.h"

namespace gantry::keeper {
namespace {

using namespace std::chrono_literals;

constexpr auto kUpgradeHelloTimeout = 10s;
constexpr auto kRetireTimeout = 2s;

}  // namespace

void Supervisor::Upgrade(const link::Upgrade& request, UpgradeDone done) {
  if (next_ || shutdown_) {
    done(Fail(Code::kFailedPrecondition, "upgrade the engine: another upgrade is going on"));
    return;
  }
  if (!request.engine.empty()) {
    if (const Status good = link::CheckProgram(request.engine); !good) {
      done(Fail(Code::kFailedPrecondition, "upgrade the engine: {}", good.error().message));
      return;
    }
  }
  auto started = Start(request.engine.empty() ? kept_.path : request.engine, true);
  if (!started) {
    done(Fail(Code::kFailedPrecondition, "upgrade the engine: {}", started.error().message));
    return;
  }
  next_ = std::move(*started);
  next_->no_fallback = request.no_fallback;
  upgrade_done_ = std::move(done);
  next_->timer = loop_.After(kUpgradeHelloTimeout, [this] {
    Kill(*next_, SIGKILL, "the new engine did not say Hello in time");
  });
}

void Supervisor::RetireCurrent() {
  current_->retiring = true;
  LeaveCharge(*current_);
  loop_.Cancel(current_->timer);
  IgnoreError(SendSignal(current_->pidfd.get(), SIGTERM), "it has ended");
  current_->timer = loop_.After(
      kRetireTimeout, [this] { Kill(*current_, SIGKILL, "it did not end when asked to"); });
}

void Supervisor::Promote() {
  kept_.ever = true;
  current_ = std::move(next_);
  kept_.fallback_path =
      current_->path != kept_.path && !current_->no_fallback ? kept_.path : std::string();
  kept_.fell_back_from.clear();
  kept_.path = current_->path;
  kept_.failures = 0;
  TakeCharge();
  if (auto done = std::exchange(upgrade_done_, {})) {
    done(link::Upgraded{current_->process.pid, kept_.fallback_path});
  }
}

void Supervisor::NextEnded(const std::string& why) {
  Note("upgrade: {}", why);
  loop_.Cancel(next_->timer);
  // If it ended while the old one was being retired, that one's end starts the old path again.
  next_.reset();
  if (auto done = std::exchange(upgrade_done_, {})) {
    done(Fail(Code::kFailedPrecondition, "upgrade the engine: {}", why));
  }
}

// --- An upgrade of the keeper --------------------------------------------------------

state::Supervisor Supervisor::Save() const {
  state::Supervisor state = kept_;
  if (current_) {
    state.engine = state::Engine{current_->path,
                                 {current_->process.pid, current_->process.start_time},
                                 current_->pidfd.get(),
                                 current_->channel->fd(),
                                 current_->answers_within.count(),
                                 current_->keep_hanging,
                                 current_->in_charge_since.time_since_epoch().count(),
                                 current_->takes_streams};
  }
  return state;
}

void Supervisor::Restore(const state::Supervisor& state) {
  kept_ = state;
  kept_.engine.reset();
  if (!state.engine) {
    if (kept_.ever) {
      Restart();
    }
    return;
  }
  current_ = std::make_unique<Engine>();
  current_->path = state.engine->path;
  current_->process = {state.engine->process.pid, state.engine->process.start_time};
  current_->pidfd = UniqueFd(state.engine->pidfd);
  current_->said_hello = true;
  current_->in_charge = true;
  current_->answers_within = std::chrono::milliseconds(state.engine->answers_within_ms);
  current_->keep_hanging = state.engine->keep_hanging;
  current_->takes_streams = state.engine->takes_streams;
  current_->in_charge_since = async::TimePoint(async::Duration(state.engine->in_charge_since_ns));
  Connect(*current_, UniqueFd(state.engine->link));
  heartbeat_.Begin(current_->answers_within);
}

}  // namespace gantry::keeper
