// SPDX-License-Identifier: Apache-2.0
//
// The life of what has an end that containerd waits for: an init, an exec, or a pod. One state
// machine for the three, with a method for each transition.
//
// It has two parts. The state is what containerd is shown and what the record says:
//
//   none -> creating -> created -> [starting ->] running <-> paused -> stopped -> none
//
// The end goes its own way, for it may come at any time: heard, put on record, acknowledged. One
// that comes before the create or start under way is published is held back until it is, so events
// are in order. And it is acknowledged (Wait is answered, the keeper may forget it) only when
// writing the record has been tried; the keeper keeps what could not be written.
//
// A transition that is not legal is a mistake of ours: it is logged, and nothing changes.
#pragma once

#include <list>
#include <optional>
#include <string_view>

#include <gantry/process.h>

#include "core/async/co.h"
#include "core/store/record.h"

namespace gantry::task {

/// Thread: loop.
class ProcessLife {
 public:
  using State = store::State;

  ProcessLife() = default;
  ProcessLife(const ProcessLife&) = delete;
  ProcessLife& operator=(const ProcessLife&) = delete;
  ~ProcessLife() = default;

  State state() const { return state_; }

  /// What calls are judged by: an end that is only being recorded counts, too.
  State effective_state() const { return exit_ ? State::kStopped : state_; }

  /// Once heard, and not held back.
  const std::optional<ExitStatus>& exit() const { return exit_; }

  /// Also one that is held back.
  bool has_end() const { return exit_ || held_end_; }

  /// Of an end that is known: a new engine would have to publish it (again), for the keeper, who
  /// tells of its own processes' ends until they are acknowledged, does not know this one.
  bool unpublished() const { return unpublished_; }

  /// Writing its end has succeeded: nobody else has to keep it.
  bool on_record() const { return progress_ >= Progress::kRecorded && saved_; }

  /// Writing its end has failed.
  bool unrecorded() const { return progress_ >= Progress::kRecorded && !saved_; }

  /// Set when the end is acknowledged.
  const async::OneShot<ExitStatus>& exited() const { return exited_; }

  /// Nothing of it is left.
  bool gone() const { return gone_; }

  /// A start is under way, or nobody has been told of it.
  bool is_starting() const { return hold_ == Hold::kStart; }

  /// It may get a signal: it runs, or is just started.
  bool may_run() const;
  /// Also one that has ended.
  bool has_started() const;

  /// Its start has failed: nothing comes out of its streams, whoever may hold them.
  bool never_ran() const { return never_ran_; }

  /// It returns when the end is acknowledged, when it is gone, or when `woken`, of which each call
  /// has its own, is set by somebody else. The object outlives it.
  async::Task<void> AwaitEnd(async::OneShot<void> woken);

  // Transitions. False: not legal in this state.

  /// None to creating. From now on an end is held back.
  bool BeginCreate();
  /// Creating to created; and none, where it is only entered.
  bool Created();
  /// Of one that is created. From now on an end is held back.
  bool BeginStart();
  /// Created to starting: a start that is on record before it is tried.
  bool Starting();
  /// Created or starting to running.
  bool Started();
  /// The start has failed, and it is as created as before. `may_have_run`: or it is not known.
  bool StartFailed(bool may_have_run);
  /// The same of one that is not started again: its end is known now.
  bool StartFailed(bool may_have_run, ExitStatus exit);
  /// Starting or running to starting: what was started is about to be ended. From now on an end is
  /// held back.
  bool UndoingStart();
  /// Starting or running to created: what was started has been ended, and is as if it had never
  /// been. An end that was held back or heard was that of the start.
  bool StartUndone();
  /// Running to paused. False, and no mistake: it does not run any more.
  bool Pause();
  /// Paused to running. False, and no mistake: it is not paused any more.
  bool Resume();
  /// A pod's: its removal begins.
  bool Deleting();
  /// It has been deleted: its state is none.
  void Deleted();
  /// Nothing of it is left: who waits is woken, also without an end.
  void SetGone();

  /// From the record, in place of what came before. An end in it is on record.
  bool Restore(State state, std::optional<ExitStatus> exit, bool unpublished);

  /// Ends are held back until `Release`: while it is taken up after a restart.
  void HoldEnds() { hold_ = Hold::kStart; }

  /// They are not any more, and the one that was is known by other means.
  void DropHeld();

  /// What was under way is published: the end that was held back, to be heard now.
  [[nodiscard]] std::optional<ExitStatus> Release();

  enum class Heard {
    /// It is to be recorded and acknowledged now.
    kNew,
    kHeld,
    /// It is known, from a record or from a source that says it twice.
    kAgain,
  };
  /// What `Hear` would say.
  Heard Expect() const;
  /// Somebody says how it has ended.
  Heard Hear(ExitStatus exit, bool unpublished);

  /// Of one whose end is known: the state is stopped. One that is deleted meanwhile: nothing.
  bool Stopped();
  /// Writing the known end has been tried. `saved`: with success.
  bool Recorded(bool saved);
  /// Of an end that is recorded: who waits gets it. Again: nothing.
  bool Acknowledge();
  /// Its event is out. True: nobody knew that but us, so it has to go on record.
  bool Published();

 private:
  enum class Hold { kNone, kCreate, kStart };
  enum class Progress { kNone, kHeard, kRecorded, kAcknowledged };

  bool Illegal(std::string_view transition) const;
  void WakeWaits();

  State state_ = State::kNone;
  Hold hold_ = Hold::kNone;
  Progress progress_ = Progress::kNone;
  std::optional<ExitStatus> held_end_;
  std::optional<ExitStatus> exit_;
  bool unpublished_ = false;
  bool saved_ = false;
  bool never_ran_ = false;
  bool gone_ = false;
  async::OneShot<ExitStatus> exited_;
  /// One for each `AwaitEnd` under way.
  std::list<async::OneShot<void>> waits_;
};

}  // namespace gantry::task
