// SPDX-License-Identifier: Apache-2.0
//
// Each transition says at its head where it is legal. What is read by others is in the header.
#include "core/task/life.h"

#include <utility>

#include "core/log/log.h"

namespace gantry::task {

bool ProcessLife::Illegal(std::string_view transition) const {
  LogError("'{}' of a process that is {}{}: not legal, a mistake of the engine", transition,
           store::StateName(state_), exit_ ? " and has an end" : "");
  return false;
}

bool ProcessLife::may_run() const {
  return (is_starting() || state_ == State::kRunning || state_ == State::kPaused) && !has_end();
}

bool ProcessLife::has_started() const {
  return state_ == State::kRunning || state_ == State::kStarting || state_ == State::kPaused ||
         state_ == State::kStopped;
}

async::Task<void> ProcessLife::AwaitEnd(async::OneShot<void> woken) {
  if (exited_.is_set() || gone_) {
    co_return;
  }
  const auto here = waits_.insert(waits_.end(), woken);
  co_await woken.Wait();
  waits_.erase(here);
}

void ProcessLife::WakeWaits() {
  for (async::OneShot<void>& wait : waits_) {
    wait.Set();
  }
}

bool ProcessLife::BeginCreate() {
  if (state_ != State::kNone) {
    return Illegal("create");
  }
  state_ = State::kCreating;
  hold_ = Hold::kCreate;
  return true;
}

bool ProcessLife::Created() {
  if (state_ != State::kNone && state_ != State::kCreating) {
    return Illegal("created");
  }
  state_ = State::kCreated;
  return true;
}

bool ProcessLife::BeginStart() {
  if (state_ != State::kCreated || exit_) {
    return Illegal("start");
  }
  hold_ = Hold::kStart;
  return true;
}

bool ProcessLife::Starting() {
  if (state_ != State::kCreated || exit_) {
    return Illegal("starting");
  }
  state_ = State::kStarting;
  return true;
}

bool ProcessLife::Started() {
  if (state_ != State::kCreated && state_ != State::kStarting) {
    return Illegal("started");
  }
  state_ = State::kRunning;
  never_ran_ = false;
  return true;
}

bool ProcessLife::StartFailed(bool may_have_run) {
  if (hold_ != Hold::kStart || (state_ != State::kCreated && state_ != State::kStarting)) {
    return Illegal("start failed");
  }
  state_ = State::kCreated;
  never_ran_ = !may_have_run;
  return true;
}

bool ProcessLife::StartFailed(bool may_have_run, ExitStatus exit) {
  if (exit_) {
    return Illegal("start failed");
  }
  if (!StartFailed(may_have_run)) {
    return false;
  }
  hold_ = Hold::kNone;
  held_end_.reset();
  exit_ = exit;
  progress_ = Progress::kHeard;
  return true;
}

bool ProcessLife::UndoingStart() {
  if (state_ != State::kStarting && state_ != State::kRunning) {
    return Illegal("undo start");
  }
  state_ = State::kStarting;
  hold_ = Hold::kStart;
  return true;
}

bool ProcessLife::StartUndone() {
  if (state_ != State::kStarting && state_ != State::kRunning) {
    return Illegal("start undone");
  }
  state_ = State::kCreated;
  hold_ = Hold::kNone;
  held_end_.reset();
  exit_.reset();
  progress_ = Progress::kNone;
  unpublished_ = false;
  if (exited_.is_set()) {
    exited_ = {};
  }
  return true;
}

bool ProcessLife::Pause() {
  if (state_ != State::kRunning) {
    return false;
  }
  state_ = State::kPaused;
  return true;
}

bool ProcessLife::Resume() {
  if (state_ != State::kPaused) {
    return false;
  }
  state_ = State::kRunning;
  return true;
}

bool ProcessLife::Deleting() {
  if (state_ == State::kNone) {
    return Illegal("delete");
  }
  state_ = State::kDeleting;
  return true;
}

void ProcessLife::Deleted() { state_ = State::kNone; }

void ProcessLife::SetGone() {
  gone_ = true;
  WakeWaits();
}

bool ProcessLife::Restore(State state, std::optional<ExitStatus> exit, bool unpublished) {
  if (state_ != State::kNone || exit_) {
    return Illegal("restore");
  }
  state_ = state;
  if (exit) {
    exit_ = exit;
    unpublished_ = unpublished;
    saved_ = true;
    progress_ = Progress::kRecorded;
  }
  return true;
}

std::optional<ExitStatus> ProcessLife::Release() {
  hold_ = Hold::kNone;
  return std::exchange(held_end_, std::nullopt);
}

void ProcessLife::DropHeld() {
  hold_ = Hold::kNone;
  held_end_.reset();
}

ProcessLife::Heard ProcessLife::Expect() const {
  if (hold_ != Hold::kNone) {
    return Heard::kHeld;
  }
  return exit_ ? Heard::kAgain : Heard::kNew;
}

ProcessLife::Heard ProcessLife::Hear(ExitStatus exit, bool unpublished) {
  const Heard heard = Expect();
  if (heard == Heard::kHeld && !held_end_) {
    held_end_ = exit;
  }
  if (heard == Heard::kNew) {
    exit_ = exit;
    unpublished_ = unpublished;
    progress_ = Progress::kHeard;
  }
  return heard;
}

bool ProcessLife::Stopped() {
  if (!exit_) {
    return Illegal("stopped");
  }
  if (state_ != State::kNone) {
    state_ = State::kStopped;
  }
  return true;
}

bool ProcessLife::Recorded(bool saved) {
  if (progress_ != Progress::kHeard && progress_ != Progress::kRecorded) {
    return Illegal("recorded");
  }
  saved_ = saved;
  progress_ = Progress::kRecorded;
  return true;
}

bool ProcessLife::Acknowledge() {
  if (progress_ < Progress::kRecorded || !exit_) {
    return Illegal("acknowledge");
  }
  progress_ = Progress::kAcknowledged;
  exited_.Set(*exit_);
  WakeWaits();
  return true;
}

bool ProcessLife::Published() { return std::exchange(unpublished_, false); }

}  // namespace gantry::task
